// The hash SHA-256 of a text: makes names that tell nothing of what they were made from. By libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// Pure.
std::array<std::uint8_t, 32> sha256(std::string_view text);

/// Returns the first `bytes` (at most 32) of the text's SHA-256 in hexadecimal digits. Pure.
std::string sha256_digits(std::string_view text, std::size_t bytes = 32);

}  // namespace muster
