// The conversion of f32 elements to f16 or bf16 and back, with error feedback.
#pragma once

#include <span>

#include "comm/tensor/compression_kind.hpp"
#include "comm/tensor/simd.hpp"

namespace muster {

/// Rounds `values` (plus `residual`, where there is one) to the wire's type, into `wire`; with a residual this becomes what
/// rounding lost: p = values * factor + residual; wire = round(p); residual = p - wire, or 0 where the wire is not finite.
/// `wire` holds values.size() two-byte elements. Pure but for its outputs; does not allocate.
void compress(compression how, std::span<float const> values, float factor, std::span<float> residual, void* wire,
              simd level) noexcept;

/// The reverse: values = wire * factor. Exact but for that product.
void decompress(compression how, void const* wire, std::span<float> values, float factor, simd level) noexcept;

}  // namespace muster
