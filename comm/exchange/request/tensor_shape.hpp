// A shape holds the extents of a named tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace muster {

/// Up to eight extents, the first counting rows. A scalar has none. A plain value.
struct tensor_shape {
    static constexpr std::size_t most_dimensions = 8;

    std::array<std::int64_t, most_dimensions> extents{};
    std::uint8_t dimensions = 0;

    bool operator==(tensor_shape const&) const = default;

    std::span<std::int64_t const> view() const noexcept { return {extents.data(), dimensions}; }
    std::int64_t rows() const noexcept { return dimensions == 0 ? 1 : extents[0]; }
    /// Elements of one row; 1 where there is at most one dimension.
    std::int64_t row_elements() const noexcept;
    std::int64_t elements() const noexcept { return rows() * row_elements(); }
};

/// Throws errc::usage on more than eight extents, a negative one, or more elements than 2^62.
tensor_shape make_shape(std::span<std::int64_t const> extents);

/// A vector of so many elements.
tensor_shape flat_shape(std::size_t elements);

/// "[64, 3, 7, 7]", "[]" for a scalar.
std::string to_string(tensor_shape const& shape);

}  // namespace muster
