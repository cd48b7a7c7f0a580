#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>

// BMP alone of stb_image's formats is compiled, and with internal linkage.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#include <stb/stb_image.h>

#include "io/sources/image_file.hpp"

namespace muster {

namespace {

/// Holds what stb_image does not tell: where the pixels lie, so that a file that ends too early is found, and what they are made of. The fields are
/// those of BITMAPCOREHEADER (12 bytes) and BITMAPINFOHEADER to BITMAPV5HEADER (Microsoft, "Bitmap Header Types").
class bmp_layout {
  public:
    bmp_layout(std::span<std::uint8_t const> bytes, std::string const& name) : bytes_(bytes), name_(name) {
        std::size_t const header = number(14, 4);
        bool const core = header == 12;
        if (!core && header < 40) refuse(fmt::format("its header has {} bytes", header));
        width_ = number(18, core ? 2 : 4);
        height_ = number(core ? 20 : 22, core ? 2 : 4);
        if (!core && height_ >= std::size_t{1} << 31)
            height_ = (std::size_t{1} << 32) - height_;  // negative: the first row is at the top
        check_picture_size(name, width_, height_);
        bits_ = number(core ? 24 : 28, 2);
        std::size_t const compression = core ? 0 : number(30, 4);
        bool const masks = compression == 3 || compression == 6;
        if ((compression != 0 && !masks) || (bits_ != 1 && bits_ != 4 && bits_ != 8 && bits_ != 16 && bits_ != 24 && bits_ != 32))
            refuse(fmt::format("{} bits a pixel with compression {}", bits_, compression),
                   "save it without compression, or as PNG");
        if (bits_ == 16)
            for (std::size_t i = 0; i < 3; ++i)
                colour_bits_[i] =
                    masks ? static_cast<unsigned>(std::popcount(static_cast<std::uint32_t>(number(54 + 4 * i, 4)))) : 5;
        alpha_ = masks && header >= 56 && number(66, 4) != 0;
        std::size_t const at = number(10, 4);
        if (bits_ <= 8) gray_ = has_gray_palette(14 + header, core ? 3 : 4, core ? 0 : number(46, 4));
        std::size_t const row = (width_ * bits_ + 31) / 32 * 4;
        if (at > bytes.size() || height_ * row > bytes.size() - at) refuse("the file ends too early", damaged_picture);
    }

    picture_header header() const { return {{gray_ ? std::size_t{1} : std::size_t{3}, height_, width_, false}, 1}; }

    picture read() const {
        int const channels = gray_ ? 1 : alpha_ ? 4 : 3;
        int width = 0, height = 0, in_file = 0;
        std::unique_ptr<stbi_uc, void (*)(void*)> const pixels(
            stbi_load_from_memory(bytes_.data(), static_cast<int>(bytes_.size()), &width, &height, &in_file,
                                  std::max(channels, 3)),
            &std::free);
        if (!pixels) refuse(stbi_failure_reason(), damaged_picture);
        picture made{width_, height_, static_cast<std::size_t>(channels), {}};
        std::size_t const count = made.width * made.height;
        if (gray_) {
            made.pixels.resize(count);
            for (std::size_t i = 0; i < count; ++i) made.pixels[i] = pixels.get()[3 * i];
        } else {
            made.pixels.assign(pixels.get(), pixels.get() + count * made.channels);
        }
        if (bits_ == 16) spread(made);
        return made;
    }

  private:
    [[noreturn]] void refuse(std::string_view what, std::string_view advice = damaged_picture) const {
        refuse_picture(name_, fmt::format("BMP: {}", what), advice);
    }
    /// Reads a number of `count` bytes, the lowest first.
    std::size_t number(std::size_t at, std::size_t count) const {
        if (at + count > bytes_.size()) refuse("the file ends too early");
        std::size_t value = 0;
        for (std::size_t i = 0; i < count; ++i) value |= std::size_t{bytes_[at + i]} << 8 * i;
        return value;
    }
    bool has_gray_palette(std::size_t at, std::size_t entry, std::size_t used) const {
        std::size_t const most = std::size_t{1} << bits_;
        std::size_t const colours = used == 0 ? most : std::min(used, most);
        number(at, 1);
        if (colours * entry > bytes_.size() - at) refuse("the file ends too early");
        for (std::size_t i = at; i < at + colours * entry; i += entry)
            if (bytes_[i] != bytes_[i + 1] || bytes_[i] != bytes_[i + 2]) return false;
        return true;
    }
    /// Colours of less than 8 bits become floor(255 v / most), as Pillow has them; stb_image repeats their upper bits below.
    void spread(picture& made) const {
        for (std::size_t i = 0; i < made.pixels.size(); ++i) {
            std::size_t const colour = i % made.channels;
            if (colour == 3 || colour_bits_[colour] == 0 || colour_bits_[colour] >= 8) continue;
            unsigned const value = made.pixels[i] >> (8 - colour_bits_[colour]);
            made.pixels[i] = static_cast<std::uint8_t>(value * 255 / ((1u << colour_bits_[colour]) - 1));
        }
    }

    std::span<std::uint8_t const> bytes_;
    std::string const& name_;
    std::size_t width_ = 0, height_ = 0, bits_ = 0;
    unsigned colour_bits_[3] = {};
    bool gray_ = false;
    bool alpha_ = false;
};

}  // namespace

picture_header read_bmp_header(std::span<std::uint8_t const> bytes, std::string const& name) {
    return bmp_layout(bytes, name).header();
}

picture read_bmp_pixels(std::span<std::uint8_t const> bytes, std::string const& name) {
    return bmp_layout(bytes, name).read();
}

}  // namespace muster
