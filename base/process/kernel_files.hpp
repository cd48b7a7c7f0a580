// Numbers in files of the kernel, in /proc, /sys and of cgroups. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

/// Returns the number that the text begins with, after blanks: "16384 kB", "5\n"; nothing for a negative one and for words.
std::optional<std::uint64_t> parse_count(std::string_view text) noexcept;

/// Returns the number in the first line "NAME NUMBER" or "NAME: NUMBER".
std::optional<std::uint64_t> count_in(std::string_view text, std::string_view name) noexcept;

}  // namespace muster
