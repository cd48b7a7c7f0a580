// The types of a dataset's elements: names and sizes of the numbers that samples are made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace muster {

enum class element_type { u8, i8, u16, i16, u32, i32, u64, i64, f32, f64 };

inline constexpr std::array element_types{element_type::u8,  element_type::i8,  element_type::u16, element_type::i16,
                                          element_type::u32, element_type::i32, element_type::u64, element_type::i64,
                                          element_type::f32, element_type::f64};

/// Calls `function` with a value of the C++ type; returns what it returns.
template <typename Function>
auto with_type(element_type type, Function&& function) {
    switch (type) {
        case element_type::i8: return function(std::int8_t{});
        case element_type::u16: return function(std::uint16_t{});
        case element_type::i16: return function(std::int16_t{});
        case element_type::u32: return function(std::uint32_t{});
        case element_type::i32: return function(std::int32_t{});
        case element_type::u64: return function(std::uint64_t{});
        case element_type::i64: return function(std::int64_t{});
        case element_type::f32: return function(float{});
        case element_type::f64: return function(double{});
        case element_type::u8: break;
    }
    return function(std::uint8_t{});
}

std::size_t bytes_of(element_type type) noexcept;
bool is_real(element_type type) noexcept;    ///< a floating-point number
bool is_signed(element_type type) noexcept;  ///< an integer that may be negative

/// NumPy's name: "uint8", "float32".
std::string_view to_string(element_type type) noexcept;
std::optional<element_type> parse_element_type(std::string_view name) noexcept;

/// Turns the byte order of every element round, in place.
void swap_bytes(element_type type, std::span<std::uint8_t> elements) noexcept;

/// Element `index` as a number; 64-bit integers are rounded.
double element_at(element_type type, std::span<std::uint8_t const> elements, std::size_t index) noexcept;

/// Smallest and largest of numbers; NaN is left out.
struct value_range {
    double least = 0;
    double most = 0;
    bool any = false;  ///< there was a number
    void add(value_range const& other) noexcept;
    bool operator==(value_range const&) const = default;
};
value_range range_of(element_type type, std::span<std::uint8_t const> elements) noexcept;

}  // namespace muster
