// The version of this build.
#pragma once

#include <string_view>

namespace muster {

/// "0.1.0", from the build.
std::string_view version() noexcept;

}  // namespace muster
