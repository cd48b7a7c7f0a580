// The readers of picture formats: each decodes its own, as it lies in the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/sources/image_file.hpp"

namespace muster {

/// Decoding goes in two steps, so that the header is judged before memory is asked for. `pixels` has 1 (gray), 2 (gray, alpha),
/// 3 (RGB) or 4 (RGB, alpha) channels of 8 bits. Errors: errc::invalid_data naming `name`.
picture_header read_png_header(std::span<std::uint8_t const> bytes, std::string const& name);
picture read_png_pixels(std::span<std::uint8_t const> bytes, std::string const& name);
picture_header read_jpeg_header(std::span<std::uint8_t const> bytes, std::string const& name);
picture read_jpeg_pixels(std::span<std::uint8_t const> bytes, std::string const& name);
picture_header read_webp_header(std::span<std::uint8_t const> bytes, std::string const& name);
picture read_webp_pixels(std::span<std::uint8_t const> bytes, std::string const& name);
picture_header read_bmp_header(std::span<std::uint8_t const> bytes, std::string const& name);
picture read_bmp_pixels(std::span<std::uint8_t const> bytes, std::string const& name);

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
