#include "io/dataset/image_shape.hpp"

#include <fmt/format.h>

namespace muster {

std::string to_string(image_shape const& shape) {
    return fmt::format("{} x {} x {}", shape.channels, shape.height, shape.width);
}

}  // namespace muster
