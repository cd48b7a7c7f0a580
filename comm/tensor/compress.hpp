// The conversion of f32 elements to f16 or bf16 and back, with error feedback.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "comm/tensor/simd.hpp"

namespace muster {

// The types that f32 elements can have on their way between ranks.

/// f16 has 11 bits of precision up to 65,504 (beyond it, infinity); bf16 has 8 bits and the range of f32.
enum class compression : std::uint8_t { none, f16, bf16 };
std::string_view to_string(compression wire) noexcept;

/// Returns the compression "none", "f16" or "bf16"; throws parse_error naming `origin` (an option or variable) for other texts.
compression parse_compression(std::string_view text, std::string_view origin);

/// Rounds `values` (plus `residual`, if there is one) to the wire's type, into `wire`; the residual becomes what rounding lost: p
/// = values * factor + residual; wire = round(p); residual = p - wire, or 0 where the wire is not finite. `wire` holds
/// values.size() two-byte elements. Pure, except for its outputs; does not allocate.
void compress(compression how, std::span<float const> values, float factor, std::span<float> residual, void* wire,
              simd level) noexcept;

/// Converts back: values = wire * factor. Exact except for that product.
void decompress(compression how, void const* wire, std::span<float> values, float factor, simd level) noexcept;

}  // namespace muster
