// Arithmetic of reductions on arrays in host memory, vectorised for the machine it runs on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/tensor/simd.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

/// out[i] = sources[0][i] op sources[1][i] op …, from left to right, with the meaning of `reduction`; for average divided by
/// sources.size(). f16 and bf16 are accumulated in float and rounded once. `out` may be one of the sources; otherwise nothing
/// overlaps. At least one source; average, and a `scale` other than one, only of floating types. `level` is one of
/// available_simd(). Neither throws nor allocates.
void combine(dtype type, reduction how, std::span<void const* const> sources, void* out, std::size_t count, simd level,
             scaling const& scale = {}) noexcept;
void combine(dtype type, reduction how, std::span<void const* const> sources, void* out, std::size_t count,
             scaling const& scale = {}) noexcept;

/// The same into each of `outs` (at least one), every element of which is read, if it is a source too, before it is written.
void combine(dtype type, reduction how, std::span<void const* const> sources, std::span<void* const> outs, std::size_t count,
             scaling const& scale = {}) noexcept;

/// out[i] = in[i] * factor, for floating types (f16 and bf16 through float), else a copy. `out` is `in` or does not overlap it.
void multiply(dtype type, void const* in, void* out, std::size_t count, double factor) noexcept;

/// data[i] = data[i] / divisor, for floating types (f16 and bf16 through float).
void divide(dtype type, void* data, std::size_t count, int divisor) noexcept;

/// Conversions of whole arrays, bit for bit those of `half` and `bfloat16`. `to` and `from` do not overlap.
void to_float(half const* from, float* to, std::size_t count, simd level) noexcept;
void to_float(bfloat16 const* from, float* to, std::size_t count, simd level) noexcept;
void from_float(float const* from, half* to, std::size_t count, simd level) noexcept;
void from_float(float const* from, bfloat16* to, std::size_t count, simd level) noexcept;

}  // namespace muster
