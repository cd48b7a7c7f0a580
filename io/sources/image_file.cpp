#include "io/sources/image_file.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>

// After <cstdio>, whose names it uses.
#include <jpeglib.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse(std::string const& name, std::string_view what, std::string_view advice) {
    throw error(errc::invalid_data, fmt::format("{}: {}; {}", name, what, advice));
}

constexpr std::string_view damaged_advice = "the file is damaged: copy or download it again";

void check_size(std::string const& name, std::uint64_t width, std::uint64_t height) {
    if (width == 0 || height == 0) refuse(name, fmt::format("{} x {} pixels", width, height), damaged_advice);
    if (width > most_pixels || height > most_pixels || width * height > most_pixels)
        refuse(name, fmt::format("its header tells of {} x {} pixels, and at most {} are read", width, height, most_pixels),
               "leave it out, or make it smaller");
}

bool is_png(std::span<std::uint8_t const> bytes) {
    static constexpr std::uint8_t magic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return bytes.size() >= sizeof magic && std::equal(std::begin(magic), std::end(magic), bytes.begin());
}

bool is_jpeg(std::span<std::uint8_t const> bytes) {
    return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

/// libpng's simplified interface: it reports failures by return value.
class png_reader {
  public:
    png_reader(std::span<std::uint8_t const> bytes, std::string const& name) : png_reader(name) {
        if (png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size()) == 0) fail();
        check_size(name, image_.width, image_.height);
        // Deflate makes at most 1032 bytes of one, and a pixel takes an eighth of a byte or more.
        if (std::uint64_t{image_.width} * image_.height / 8 > bytes.size() * std::uint64_t{1032})
            refuse(name,
                   fmt::format("its header tells of {} x {} pixels, which {} bytes cannot hold", image_.width, image_.height,
                               bytes.size()),
                   damaged_advice);
    }
    ~png_reader() { png_image_free(&image_); }
    png_reader(png_reader const&) = delete;
    png_reader& operator=(png_reader const&) = delete;

    image_shape shape() const {
        return {(image_.format & PNG_FORMAT_FLAG_COLOR) != 0 ? std::size_t{3} : std::size_t{1}, image_.height, image_.width};
    }
    picture read(std::size_t channels) {
        image_.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
        picture made{image_.width, image_.height, channels, {}};
        made.pixels.resize(PNG_IMAGE_SIZE(image_));
        png_color const black{0, 0, 0};
        if (png_image_finish_read(&image_, &black, made.pixels.data(), 0, nullptr) == 0) fail();
        return made;
    }

  private:
    /// Made first, so that the destructor runs where the rest of a constructor fails.
    explicit png_reader(std::string const& name) : name_(name) { image_.version = PNG_IMAGE_VERSION; }
    [[noreturn]] void fail() const { refuse(name_, fmt::format("PNG: {}", without_controls(image_.message)), damaged_advice); }

    std::string const& name_;
    png_image image_{};
};

struct jpeg_failure : jpeg_error_mgr {
    std::jmp_buf back;
    char message[JMSG_LENGTH_MAX];
};

extern "C" void jpeg_failed(j_common_ptr info) {
    auto* const failure = static_cast<jpeg_failure*>(info->err);
    info->err->format_message(info, failure->message);
    std::longjmp(failure->back, 1);
}
extern "C" void jpeg_silent(j_common_ptr) {}
extern "C" void jpeg_warned(j_common_ptr info, int level) {
    if (level < 0) jpeg_failed(info);  // a warning: data that are damaged or missing
}

/// libjpeg reports failures by a jump: what has a destructor lives outside of the functions that jump.
class jpeg_reader {
  public:
    jpeg_reader(std::span<std::uint8_t const> bytes, std::string const& name) : jpeg_reader(name) {
        if (!read_header(bytes)) fail();
        check_size(name, info_.image_width, info_.image_height);
    }
    ~jpeg_reader() { jpeg_destroy_decompress(&info_); }
    jpeg_reader(jpeg_reader const&) = delete;
    jpeg_reader& operator=(jpeg_reader const&) = delete;

    image_shape shape() const {
        return {info_.num_components == 1 ? std::size_t{1} : std::size_t{3}, info_.image_height, info_.image_width};
    }
    picture read(std::size_t channels) {
        if (info_.num_components == 4)
            refuse(name_, "a JPEG of four inks (CMYK)", "make it RGB first, as `convert IN -colorspace sRGB OUT` does");
        picture made{info_.image_width, info_.image_height, channels, {}};
        made.pixels.resize(made.width * made.height * channels);
        if (!read_rows(made)) fail();
        return made;
    }

  private:
    /// As png_reader's.
    explicit jpeg_reader(std::string const& name) : name_(name) {
        info_.err = jpeg_std_error(&failure_);
        failure_.error_exit = jpeg_failed;
        failure_.output_message = jpeg_silent;
        failure_.emit_message = jpeg_warned;
        jpeg_create_decompress(&info_);
    }
    bool read_header(std::span<std::uint8_t const> bytes) {
        if (setjmp(failure_.back) != 0) return false;
        jpeg_mem_src(&info_, bytes.data(), bytes.size());
        return jpeg_read_header(&info_, 1) == JPEG_HEADER_OK;
    }
    bool read_rows(picture& made) {
        if (setjmp(failure_.back) != 0) return false;
        info_.out_color_space = made.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_start_decompress(&info_);
        while (info_.output_scanline < info_.output_height) {
            JSAMPROW row = made.pixels.data() + std::size_t{info_.output_scanline} * made.width * made.channels;
            jpeg_read_scanlines(&info_, &row, 1);
        }
        jpeg_finish_decompress(&info_);
        return true;
    }
    [[noreturn]] void fail() const { refuse(name_, fmt::format("JPEG: {}", without_controls(failure_.message)), damaged_advice); }

    std::string const& name_;
    jpeg_decompress_struct info_{};
    jpeg_failure failure_{};
};

[[noreturn]] void unknown(std::string const& name) {
    refuse(name, "is neither PNG nor JPEG", "convert it, or take it out of the folder");
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

image_shape probe_picture(std::span<std::uint8_t const> bytes, std::string const& name) {
    if (is_png(bytes)) return png_reader(bytes, name).shape();
    if (is_jpeg(bytes)) return jpeg_reader(bytes, name).shape();
    unknown(name);
}

picture decode_picture(std::span<std::uint8_t const> bytes, std::string const& name, std::size_t channels) {
    if (is_png(bytes)) return png_reader(bytes, name).read(channels);
    if (is_jpeg(bytes)) return jpeg_reader(bytes, name).read(channels);
    unknown(name);
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
        throw error(errc::io, fmt::format("{}: PNG: {}; give fewer samples or smaller ones", path, image.message));
    write_output_file(path, std::string_view(bytes).substr(0, size), "check that its folder exists and has space");
}

}  // namespace muster
