#include "io/dataset/image_shape.hpp"

#include <fmt/format.h>

namespace muster {

std::string to_string(image_shape const& shape) {
    if (shape.is_row) return fmt::format("{}", shape.width);
    return fmt::format("{} x {} x {}", shape.channels, shape.height, shape.width);
}

}  // namespace muster
