// Throws errors whose messages are formatted.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"

namespace muster {

/// Throws an error with `text`, in which the values stand in place of {}.
template <typename... Values>
[[noreturn]] void throw_error(errc code, fmt::format_string<Values...> text, Values&&... values) {
    throw error(code, fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace muster
