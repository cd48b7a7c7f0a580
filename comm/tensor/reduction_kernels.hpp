// Arithmetic of reductions on arrays in host memory, vectorised for the machine on which it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/tensor/simd.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

/// out[i] = sources[0][i] op sources[1][i] op …, from left to right, with the meaning of `reduction`; for average divided by
/// sources.size(). f16 and bf16 are accumulated in float and rounded once. `out` may be one of the sources; otherwise nothing
/// overlaps. At least one source; average, and a `scale` other than one, only for floating types. `level` is one of
/// available_simd(). Neither throws nor allocates.
void combine(dtype type, reduction how, std::span<void const* const> sources, void* out, std::size_t count, simd level,
             scaling const& scale = {}) noexcept;
void combine(dtype type, reduction how, std::span<void const* const> sources, void* out, std::size_t count,
             scaling const& scale = {}) noexcept;

/// The same into each of `outs` (at least one); an element that is a source too is read before it is written.
void combine(dtype type, reduction how, std::span<void const* const> sources, std::span<void* const> outs, std::size_t count,
             scaling const& scale = {}) noexcept;

/// out[i] = in[i] * factor, for floating types (f16 and bf16 through float), else a copy. `out` is `in` or does not overlap it.
void multiply(dtype type, void const* in, void* out, std::size_t count, double factor) noexcept;

/// data[i] = data[i] / divisor, for floating types (f16 and bf16 through float).
void divide(dtype type, void* data, std::size_t count, int divisor) noexcept;

/// These convert whole arrays, bit for bit as `half` and `bfloat16` do. `to` and `from` do not overlap.
void to_float(half const* from, float* to, std::size_t count, simd level) noexcept;
void to_float(bfloat16 const* from, float* to, std::size_t count, simd level) noexcept;
void from_float(float const* from, half* to, std::size_t count, simd level) noexcept;
void from_float(float const* from, bfloat16* to, std::size_t count, simd level) noexcept;

// The dispatch from an element type known at run time to code compiled for it.

/// Calls `body` with the C++ type whose dtype_of() is `type` and returns what it returns, which has one type for all. Callers
/// refuse types that are is_only_moved(), which have no C++ type.
///     with_dtype(view.type, [&]<typename T>() { fill(static_cast<T*>(view.data), view.count); });
/// The switch is outside the loops of the body.
template <typename Body>
constexpr decltype(auto) with_dtype(dtype type, Body&& body) {
    switch (type) {
        case dtype::f32: return body.template operator()<float>();
        case dtype::f64: return body.template operator()<double>();
        case dtype::f16: return body.template operator()<half>();
        case dtype::bf16: return body.template operator()<bfloat16>();
        case dtype::i32: return body.template operator()<std::int32_t>();
        case dtype::i64: return body.template operator()<std::int64_t>();
        case dtype::u8: return body.template operator()<std::uint8_t>();
        case dtype::boolean:
        case dtype::i16:
        case dtype::u16:  // never reduced, so no code is compiled for them
        case dtype::i8: break;
    }
    return body.template operator()<std::int8_t>();
}

}  // namespace muster
