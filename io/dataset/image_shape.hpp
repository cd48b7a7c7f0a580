// The shape of one image.
#pragma once

#include <cstddef>
#include <string>

namespace muster {

/// Channels x height x width elements, in this order (planes, rows, columns). A vector is 1 x 1 x its length.
struct image_shape {
    std::size_t channels = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    std::size_t elements() const noexcept { return channels * height * width; }
    bool operator==(image_shape const&) const = default;
};

/// "1 x 28 x 28".
std::string to_string(image_shape const& shape);

}  // namespace muster
