// Words of a collective's error by which the launcher knows, from a rank's standard error, that another rank is to blame.
#pragma once

#include <string_view>

namespace muster {

inline constexpr std::string_view ended_exchange_words = "ended the exchange and will not take part";

}  // namespace muster
