#include "comm/exchange/batch/neutral_elements.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace muster::detail {

namespace {

template <typename T>
void fill(void* to, std::size_t count, T value) {
    std::fill_n(static_cast<T*>(to), count, value);
}

template <typename T>
void fill_type(reduction how, void* to, std::size_t count) {
    using limits = std::numeric_limits<T>;
    T value{};
    if (how == reduction::product) value = T{1};
    if (how == reduction::min) value = limits::has_infinity ? limits::infinity() : limits::max();
    if (how == reduction::max) value = limits::has_infinity ? -limits::infinity() : limits::lowest();
    fill(to, count, value);
}

/// f16 and bf16 by their bits: zero, one, plus and minus infinity.
void fill_bits(reduction how, void* to, std::size_t count, std::uint16_t one, std::uint16_t infinity) {
    std::uint16_t value = 0;
    if (how == reduction::product) value = one;
    if (how == reduction::min) value = infinity;
    if (how == reduction::max) value = static_cast<std::uint16_t>(infinity | 0x8000u);
    fill(to, count, value);
}

}  // namespace

void fill_neutral(dtype type, reduction how, void* to, std::size_t count) {
    switch (type) {
        case dtype::f32: return fill_type<float>(how, to, count);
        case dtype::f64: return fill_type<double>(how, to, count);
        case dtype::f16: return fill_bits(how, to, count, 0x3c00, 0x7c00);
        case dtype::bf16: return fill_bits(how, to, count, 0x3f80, 0x7f80);
        case dtype::i32: return fill_type<std::int32_t>(how, to, count);
        case dtype::i64: return fill_type<std::int64_t>(how, to, count);
        case dtype::u8: return fill_type<std::uint8_t>(how, to, count);
        case dtype::i8: return fill_type<std::int8_t>(how, to, count);
        case dtype::boolean:
        case dtype::i16:
        case dtype::u16: return fill_type<std::uint8_t>(reduction::sum, to, count * size_of(type));
    }
}

}  // namespace muster::detail
