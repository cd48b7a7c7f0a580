#include "comm/exchange/request/tensor_shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/backend/comm_error.hpp"

namespace muster {

std::int64_t tensor_shape::row_elements() const noexcept {
    std::int64_t product = 1;
    for (std::size_t i = 1; i < dimensions; ++i) product *= extents[i];
    return product;
}

tensor_shape make_shape(std::span<std::int64_t const> extents) {
    if (extents.size() > tensor_shape::most_dimensions)
        throw comm_error(errc::usage, fmt::format("a tensor of {} dimensions; {} are supported: merge some", extents.size(),
                                                  tensor_shape::most_dimensions));
    constexpr std::int64_t most = std::int64_t{1} << 62;
    tensor_shape shape;
    std::int64_t product = 1;
    for (std::int64_t const extent : extents) {
        if (extent < 0) throw comm_error(errc::usage, fmt::format("the extent {} of a shape is negative", extent));
        // Extents beside a zero must not overflow either: row_elements() multiplies them alone.
        if (extent > 1 && product > most / extent)
            throw comm_error(errc::usage, fmt::format("the shape [{}] has more than 2^62 elements", fmt::join(extents, ", ")));
        product *= extent > 1 ? extent : 1;
        shape.extents[shape.dimensions++] = extent;
    }
    return shape;
}

tensor_shape flat_shape(std::size_t elements) {
    tensor_shape shape;
    shape.extents[0] = static_cast<std::int64_t>(elements);
    shape.dimensions = 1;
    return shape;
}

std::string to_string(tensor_shape const& shape) {
    return fmt::format("[{}]", fmt::join(shape.view(), ", "));
}

}  // namespace muster
