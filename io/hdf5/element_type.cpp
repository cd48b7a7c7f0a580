#include "io/hdf5/element_type.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace muster {

static_assert(std::endian::native == std::endian::little, "files are written as memory is: least significant byte first");

namespace {

constexpr std::string_view type_names[] = {"uint8", "int8",   "uint16", "int16",   "uint32",
                                           "int32", "uint64", "int64",  "float32", "float64"};

template <typename Number>
value_range range_of_numbers(std::span<std::uint8_t const> elements) noexcept {
    Number least = std::numeric_limits<Number>::max();
    Number most = std::numeric_limits<Number>::lowest();
    bool any = false;
    for (std::size_t i = 0; i + sizeof(Number) <= elements.size(); i += sizeof(Number)) {
        Number value;
        std::memcpy(&value, elements.data() + i, sizeof value);
        if constexpr (std::is_floating_point_v<Number>) any = any || !std::isnan(value);
        least = value < least ? value : least;  // false for NaN
        most = value > most ? value : most;
    }
    if constexpr (!std::is_floating_point_v<Number>) any = !elements.empty();
    if (!any) return {};
    return {static_cast<double>(least), static_cast<double>(most), true};
}

}  // namespace

std::size_t bytes_of(element_type type) noexcept {
    return with_type(type, [](auto value) { return sizeof value; });
}

bool is_real(element_type type) noexcept {
    return type == element_type::f32 || type == element_type::f64;
}

bool is_signed(element_type type) noexcept {
    return with_type(type, [](auto value) { return std::is_integral_v<decltype(value)> && std::is_signed_v<decltype(value)>; });
}

std::string_view to_string(element_type type) noexcept {
    return type_names[static_cast<std::size_t>(type)];
}

std::optional<element_type> parse_element_type(std::string_view name) noexcept {
    for (element_type const type : element_types)
        if (to_string(type) == name) return type;
    return std::nullopt;
}

void swap_bytes(element_type type, std::span<std::uint8_t> elements) noexcept {
    std::size_t const size = bytes_of(type);
    for (std::size_t i = 0; size > 1 && i + size <= elements.size(); i += size)
        std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(i), elements.begin() + static_cast<std::ptrdiff_t>(i + size));
}

double element_at(element_type type, std::span<std::uint8_t const> elements, std::size_t index) noexcept {
    return with_type(type, [&](auto value) {
        std::memcpy(&value, elements.data() + index * sizeof value, sizeof value);
        return static_cast<double>(value);
    });
}

void value_range::add(value_range const& other) noexcept {
    if (!other.any) return;
    least = any ? std::min(least, other.least) : other.least;
    most = any ? std::max(most, other.most) : other.most;
    any = true;
}

value_range range_of(element_type type, std::span<std::uint8_t const> elements) noexcept {
    return with_type(type, [&](auto value) { return range_of_numbers<decltype(value)>(elements); });
}

}  // namespace muster
