#include "launch/engine/program_version.hpp"

#include <algorithm>
#include <cstdint>

#include "base/text.hpp"

namespace muster {

namespace {

/// The number at `at`, which moves behind it.
std::optional<std::int64_t> take_number(std::string_view text, std::size_t& at) noexcept {
    auto const from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return parse_integer(text.substr(from, std::min<std::size_t>(at - from, 9)));
}

}  // namespace

std::optional<program_version> find_version(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        if (!is_digit(text[at])) {
            ++at;
            continue;
        }
        auto const major = take_number(text, at);
        if (at + 1 >= text.size() || text[at] != '.' || !is_digit(text[at + 1])) continue;
        ++at;
        auto const minor = take_number(text, at);
        if (major && minor) return program_version{static_cast<int>(*major), static_cast<int>(*minor)};
    }
    return std::nullopt;
}

}  // namespace muster
