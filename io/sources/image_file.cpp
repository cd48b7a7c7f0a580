
#include "io/sources/image_file.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>

#include "base/letters.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

namespace {

struct picture_format {
    std::string_view magic;
    std::size_t magic_at;
    picture_header (*header)(std::span<std::uint8_t const>, std::string const&);
    picture (*pixels)(std::span<std::uint8_t const>, std::string const&);
};

constexpr picture_format formats[] = {
    {"\x89PNG\r\n\x1a\n", 0, read_png_header, read_png_pixels},
    {"\xff\xd8\xff", 0, read_jpeg_header, read_jpeg_pixels},
    {"WEBPVP8", 8, read_webp_header, read_webp_pixels},
};

/// Finds the format by the first bytes, whatever the name says.
picture_format const& format_of(std::span<std::uint8_t const> bytes, std::string const& name) {
    std::string_view const text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
    for (picture_format const& each : formats)
        if (text.size() > each.magic_at && text.substr(each.magic_at).starts_with(each.magic)) return each;
    refuse_picture(name, fmt::format("is not {}", picture_formats),
                   "convert it, take it out of the folder, or give --skip-damaged");
}

/// Lays what is transparent on black: each colour is multiplied by its alpha, as it is stored.
void lay_on_black(picture& made) {
    std::size_t const colours = made.channels - 1;
    std::size_t const pixels = made.width * made.height;
    for (std::size_t i = 0; i < pixels; ++i)
        for (std::size_t c = 0; c < colours; ++c)
            made.pixels[i * colours + c] =
                times_255th(made.pixels[i * made.channels + c], made.pixels[i * made.channels + colours]);
    made.channels = colours;
    made.pixels.resize(pixels * colours);
}

/// The luma of ITU-R BT.601, with weights of 1/65536 as Pillow has them.
void make_gray(picture& made) {
    std::size_t const pixels = made.width * made.height;
    for (std::size_t i = 0; i < pixels; ++i) {
        std::uint8_t const* const from = &made.pixels[i * 3];
        made.pixels[i] = static_cast<std::uint8_t>((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
    }
    made.channels = 1;
    made.pixels.resize(pixels);
}

void make_colour(picture& made) {
    std::size_t const pixels = made.width * made.height;
    made.pixels.resize(pixels * 3);
    for (std::size_t i = pixels; i-- > 0;) std::fill_n(&made.pixels[i * 3], 3, made.pixels[i]);
    made.channels = 3;
}

/// Weights of a triangle over the old pixels under each new one.
struct weights {
    std::size_t first = 0;
    std::vector<float> of;
};

std::vector<weights> weights_for(std::size_t from, std::size_t to) {
    double const scale = static_cast<double>(from) / static_cast<double>(to);
    double const reach = std::max(scale, 1.0);
    std::vector<weights> all(to);
    for (std::size_t i = 0; i < to; ++i) {
        double const middle = (static_cast<double>(i) + 0.5) * scale;
        auto const first = static_cast<std::size_t>(std::max(0.0, std::floor(middle - reach + 0.5)));
        auto const end = std::min(from, static_cast<std::size_t>(std::max(0.0, std::floor(middle + reach + 0.5))));
        double sum = 0;
        std::vector<double> raw;
        for (std::size_t at = first; at < std::max(end, first + 1); ++at) {
            raw.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(at) + 0.5 - middle) / reach)));
            sum += raw.back();
        }
        all[i].first = first;
        for (double const weight : raw)
            all[i].of.push_back(static_cast<float>(sum > 0 ? weight / sum : 1.0 / static_cast<double>(raw.size())));
    }
    return all;
}

}  // namespace

bool is_picture_name(std::string_view file) {
    std::size_t const dot = file.rfind('.');
    if (dot == std::string_view::npos) return false;
    auto const ending = lower_case(file.substr(dot));
    return ending == ".png" || ending == ".jpg" || ending == ".jpeg" || ending == ".webp";
}

void refuse_picture(std::string const& name, std::string_view what, std::string_view advice) {
    throw_error(errc::invalid_data, "{}: {}; {}", name, what, advice);
}

void check_picture_size(std::string const& name, std::uint64_t width, std::uint64_t height) {
    if (width == 0 || height == 0) refuse_picture(name, fmt::format("{} x {} pixels", width, height));
    if (width > most_pixels || height > most_pixels || width * height > most_pixels)
        refuse_picture(name,
                       fmt::format("its header tells of {} x {} pixels, and at most {} are read", width, height, most_pixels),
                       "leave it out, or make it smaller");
}

picture_header probe_picture(std::span<std::uint8_t const> bytes, std::string const& name) {
    return format_of(bytes, name).header(bytes, name);
}

picture decode_picture(std::span<std::uint8_t const> bytes, std::string const& name, std::size_t channels) {
    picture made = format_of(bytes, name).pixels(bytes, name);
    if (made.channels % 2 == 0) lay_on_black(made);
    if (made.channels == 3 && channels == 1) make_gray(made);
    if (made.channels == 1 && channels == 3) make_colour(made);
    return made;
}

picture resized(picture const& from, std::size_t height, std::size_t width) {
    std::size_t const channels = from.channels;
    std::vector<weights> const across = weights_for(from.width, width);
    std::vector<weights> const down = weights_for(from.height, height);
    std::vector<float> rows(from.height * width * channels);
    for (std::size_t y = 0; y < from.height; ++y)
        for (std::size_t x = 0; x < width; ++x)
            for (std::size_t c = 0; c < channels; ++c) {
                float sum = 0;
                for (std::size_t i = 0; i < across[x].of.size(); ++i)
                    sum += across[x].of[i] * from.pixels[(y * from.width + across[x].first + i) * channels + c];
                rows[(y * width + x) * channels + c] = sum;
            }
    picture made{width, height, channels, {}};
    made.pixels.resize(width * height * channels);
    for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width * channels; ++x) {
            float sum = 0;
            for (std::size_t i = 0; i < down[y].of.size(); ++i)
                sum += down[y].of[i] * rows[(down[y].first + i) * width * channels + x];
            made.pixels[y * width * channels + x] = static_cast<std::uint8_t>(std::clamp(sum + 0.5f, 0.0f, 255.0f));
        }
    return made;
}

void to_planes(picture const& from, std::span<std::uint8_t> out) {
    std::size_t const pixels = from.width * from.height;
    for (std::size_t c = 0; c < from.channels; ++c)
        for (std::size_t i = 0; i < pixels; ++i) out[c * pixels + i] = from.pixels[i * from.channels + c];
}

void write_png(picture const& from, std::string const& path) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(from.width);
    image.height = static_cast<png_uint_32>(from.height);
    image.format = from.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::string bytes(size, '\0');
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, from.pixels.data(), 0, nullptr) == 0)
        throw_error(errc::io, "{}: PNG: {}; give fewer samples or smaller ones", path, image.message);
    write_output_file(path, std::string_view(bytes).substr(0, size), "give another file, in a folder that exists and has space");
}

}  // namespace muster
