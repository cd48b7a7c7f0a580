// The types that f32 elements can have while they travel between ranks.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

/// f16 has 11 bits of precision up to 65,504 (beyond it, infinity); bf16 has 8 bits and the range of f32.
enum class compression : std::uint8_t { none, f16, bf16 };
std::string_view to_string(compression wire) noexcept;

/// "none", "f16" or "bf16"; throws parse_error naming `origin` (an option or variable) otherwise.
compression parse_compression(std::string_view text, std::string_view origin);

}  // namespace muster
