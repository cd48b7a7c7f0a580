// The shape of one image.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

/// Channels x height x width elements, in this order (planes, rows, columns). A row of a table is 1 x 1 x its length, and is known as one.
struct image_shape {
    std::size_t channels = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    bool is_row = false;  ///< of one dimension, its length
    /// {channels, height, width}, or {width} of a row.
    std::vector<std::size_t> dimensions() const { return is_row ? std::vector{width} : std::vector{channels, height, width}; }
    std::size_t elements() const noexcept { return channels * height * width; }
    bool operator==(image_shape const&) const = default;
};

/// "1 x 28 x 28"; of a row "28".
std::string to_string(image_shape const& shape);

}  // namespace muster
