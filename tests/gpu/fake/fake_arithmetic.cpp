#include "fake_arithmetic.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "comm/tensor/half.hpp"

namespace muster::fake {

namespace {

using nccl::op;
using nccl::type;

/// Calls `body` with a value of the C++ type of `element`.
template <typename Body>
auto with_type(type element, Body&& body) {
    switch (element) {
        case type::f64: return body(double{});
        case type::f32: return body(float{});
        case type::f16: return body(half{});
        case type::bf16: return body(bfloat16{});
        case type::i64: return body(std::int64_t{});
        case type::i32: return body(std::int32_t{});
        case type::i8: return body(std::int8_t{});
        case type::u8: break;
    }
    return body(std::uint8_t{});
}

template <typename T>
constexpr bool is_narrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <typename T>
double read(std::byte const* from, std::size_t i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    if constexpr (is_narrow<T>)
        return static_cast<double>(static_cast<float>(value));
    else
        return static_cast<double>(value);
}

template <typename T>
void write(void* to, std::size_t i, double number) {
    T value;
    if constexpr (is_narrow<T>)
        value = T(static_cast<float>(number));
    else
        value = static_cast<T>(number);
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof(T), &value, sizeof(T));
}

double combine(double a, double b, op how) {
    switch (how) {
        case op::product: return a * b;
        case op::min: return std::min(a, b);
        case op::max: return std::max(a, b);
        default: return a + b;
    }
}

}  // namespace

std::size_t size_of(type element) noexcept {
    return with_type(element, [](auto value) { return sizeof value; });
}

double read_element(void const* from, type element) {
    return with_type(element, [&](auto value) { return read<decltype(value)>(static_cast<std::byte const*>(from), 0); });
}

void reduce(std::span<reduction_input const> inputs, std::size_t first, std::size_t count, type element, op how, void* out) {
    with_type(element, [&](auto value) {
        using T = decltype(value);
        std::vector<double> total(count);
        for (std::size_t i = 0; i < count; ++i) total[i] = read<T>(inputs.front().data, first + i) * inputs.front().factor;
        for (auto const& each : inputs.subspan(1))
            for (std::size_t i = 0; i < count; ++i)
                total[i] = combine(total[i], read<T>(each.data, first + i) * each.factor, how);
        double const divisor = how == op::average ? static_cast<double>(inputs.size()) : 1;
        for (std::size_t i = 0; i < count; ++i) write<T>(out, i, total[i] / divisor);
    });
}

}  // namespace muster::fake
