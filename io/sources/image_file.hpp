// Pictures in PNG, JPEG and WebP: reads their size, and their pixels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

/// Holds what the header of a picture says.
struct picture_header {
    image_shape shape;    ///< 1 channel if it is gray, else 3
    int orientation = 1;  ///< Exif's: 1 upright, 2 to 8 turned or mirrored when shown; 1 where the file does not say
    bool operator==(picture_header const&) const = default;
};

/// The formats that are read, and the endings of such files.
inline constexpr std::string_view picture_formats = "PNG, JPEG or WebP";
inline constexpr std::string_view picture_endings = ".png, .jpg, .jpeg, .webp";

/// Returns whether a file of that name is taken for a picture, whatever the case of its ending.
bool is_picture_name(std::string_view file);

/// Reads the header of a picture whose file is `bytes`. Throws errc::invalid_data naming `name`: of none of these formats, damaged, more pixels than
/// `most_pixels`.
picture_header probe_picture(std::span<std::uint8_t const> bytes, std::string const& name);

/// Reads the pixels with 1 or 3 channels, whatever the picture has itself, as they are stored: neither gamma nor profile nor orientation is applied.
/// Colours become gray by the weights of ITU-R BT.601, of 16 bits the upper 8 are taken, what is transparent is laid on black (colour
/// times alpha), inks (CMYK) become light as Pillow does it. The size is checked, as above, before memory is asked for.
picture decode_picture(std::span<std::uint8_t const> bytes, std::string const& name, std::size_t channels);

inline constexpr std::uint64_t most_pixels = std::uint64_t{1} << 28;

/// The picture of another size: each new pixel is the mean of the old ones under it, weighted by a triangle, so that edges stay
/// free of steps. The proportions are those asked for.
picture resized(picture const& from, std::size_t height, std::size_t width);

/// The pixels as planes, one after the other.
void to_planes(picture const& from, std::span<std::uint8_t> out);

/// Writes a PNG file. Throws errc::io.
void write_png(picture const& from, std::string const& path);

// The readers of picture formats: each decodes its own, as it lies in the file.

/// Decoding goes in two steps, so that the header is judged before memory is asked for. `pixels` has 1 (gray), 2 (gray, alpha),
/// 3 (RGB) or 4 (RGB, alpha) channels of 8 bits. Errors: errc::invalid_data naming `name`.
picture_header read_png_header(std::span<std::uint8_t const> bytes, std::string const& name);
picture read_png_pixels(std::span<std::uint8_t const> bytes, std::string const& name);
picture_header read_jpeg_header(std::span<std::uint8_t const> bytes, std::string const& name);
picture read_jpeg_pixels(std::span<std::uint8_t const> bytes, std::string const& name);
picture_header read_webp_header(std::span<std::uint8_t const> bytes, std::string const& name);
picture read_webp_pixels(std::span<std::uint8_t const> bytes, std::string const& name);

/// The orientation (1 to 8) that Exif data tell; 1 where they tell none, or are damaged.
int exif_orientation(std::span<std::uint8_t const> tiff);

/// round(a * b / 255).
constexpr std::uint8_t times_255th(unsigned a, unsigned b) {
    unsigned const product = a * b + 128;
    return static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
}

/// Throws unless the size is one that is read.
void check_picture_size(std::string const& name, std::uint64_t width, std::uint64_t height);

inline constexpr std::string_view damaged_picture = "the file is damaged: copy or download it again, or give --skip-damaged";
[[noreturn]] void refuse_picture(std::string const& name, std::string_view what, std::string_view advice = damaged_picture);

}  // namespace muster
