// Pictures in PNG and JPEG: reads their size, and their pixels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/dataset/image_shape.hpp"

namespace muster {

/// Pixels as rows of interleaved bytes.
struct picture {
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t channels = 0;  ///< 1 gray, 3 RGB
    std::vector<std::uint8_t> pixels;
    bool operator==(picture const&) const = default;
};

/// The size of a picture whose file is `bytes`, by its header alone: 1 channel if it is gray. Throws errc::invalid_data naming
/// `name`: neither PNG nor JPEG, damaged, more pixels than `most_pixels`.
image_shape probe_picture(std::span<std::uint8_t const> bytes, std::string const& name);

/// Its pixels with 1 or 3 channels, whatever it has itself: colours become gray by their luminance, 16 bits become 8, what is
/// transparent is laid on black. The size is checked, as above, before memory is asked for.
picture decode_picture(std::span<std::uint8_t const> bytes, std::string const& name, std::size_t channels);

inline constexpr std::uint64_t most_pixels = std::uint64_t{1} << 28;

/// The picture of another size: each new pixel is the mean of the old ones under it, weighted by a triangle, so that edges stay
/// free of steps. The proportions are those asked for.
picture resized(picture const& from, std::size_t height, std::size_t width);

/// The pixels as planes, one after the other.
void to_planes(picture const& from, std::span<std::uint8_t> out);

/// Writes a PNG file. Throws errc::io.
void write_png(picture const& from, std::string const& path);

}  // namespace muster
