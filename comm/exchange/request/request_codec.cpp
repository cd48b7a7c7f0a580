#include "comm/exchange/request/request_codec.hpp"

#include <cstdint>

#include "base/codec/codec.hpp"
#include "base/throw_error.hpp"

namespace muster {

/// Writes the extents that a shape has, not all of the array. `read` throws errc::usage for a shape that cannot be.
template <>
struct codec::form<tensor_shape> {
    static constexpr std::size_t least_bytes = 1;
    static void write(auto& to, tensor_shape const& shape) {
        to << shape.dimensions;
        for (std::int64_t const extent : shape.view()) to << extent;
    }
    static void read(codec::reader& from, tensor_shape& shape) {
        auto const dimensions = from.get<std::uint8_t>();
        if (dimensions > tensor_shape::most_dimensions) codec::fail_by_value(dimensions);
        std::int64_t extents[tensor_shape::most_dimensions];
        for (std::size_t i = 0; i < dimensions; ++i) extents[i] = from.get<std::int64_t>();
        shape = make_shape({extents, dimensions});
    }
};

std::vector<std::byte> encode(std::span<exchange_request const> requests) {
    return codec::encode<std::vector<std::byte>>(requests);
}

std::vector<exchange_request> decode_requests(std::span<std::byte const> bytes) try {
    std::vector<exchange_request> requests;
    codec::reader(bytes) >> requests;
    return requests;
} catch (error const& problem) {
    throw_error(errc::invalid_data, "requests of another rank cannot be decoded: {}; run the same muster version on all ranks",
                problem.what());
}

}  // namespace muster
