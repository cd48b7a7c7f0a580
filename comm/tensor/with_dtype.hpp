// The dispatch from an element type known at run time to code compiled for it.
#pragma once

#include <cstdint>

#include "comm/tensor/tensor.hpp"

namespace muster {

/// Calls `body` with the C++ type whose dtype_of() is `type` and returns what it returns, which is of one type for all.
/// Callers refuse types that are is_only_moved(), which have no C++ type.
///     with_dtype(view.type, [&]<typename T>() { fill(static_cast<T*>(view.data), view.count); });
/// A switch, outside whatever loops the body holds.
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
        case dtype::u16:  // never reduced: no code is compiled for them
        case dtype::i8: break;
    }
    return body.template operator()<std::int8_t>();
}

}  // namespace muster
