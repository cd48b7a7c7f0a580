#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "io/sources/image_file.hpp"

namespace muster {

namespace {

/// Holds what libpng's functions that we give it work on.
struct png_input {
    std::span<std::uint8_t const> rest;
    char message[256] = "";
};

extern "C" void png_failed(png_structp png, png_const_charp message) {
    auto* const input = static_cast<png_input*>(png_get_error_ptr(png));
    std::strncpy(input->message, message, sizeof input->message - 1);
    png_longjmp(png, 1);
}
extern "C" void png_warned(png_structp, png_const_charp) {}
extern "C" void png_give(png_structp png, png_bytep to, std::size_t count) {
    auto* const input = static_cast<png_input*>(png_get_io_ptr(png));
    if (count > input->rest.size()) png_error(png, "the file ends too early");
    std::memcpy(to, input->rest.data(), count);
    input->rest = input->rest.subspan(count);
}

/// libpng reports failures by a jump: what has a destructor lives outside of the functions that jump. Its interface of single steps is
/// used, since the simple one works in linear light, whatever the file says.
class png_reader {
  public:
    png_reader(std::span<std::uint8_t const> bytes, std::string const& name) : png_reader(name) {
        input_.rest = bytes;
        if (png_ == nullptr || info_ == nullptr) throw library_error("libpng", "png_create_read_struct", 0, "no memory");
        if (!read_header()) fail();
        check_picture_size(name, width(), height());
        // Deflate makes at most 1032 bytes of one, and a pixel takes an eighth of a byte or more.
        if (std::uint64_t{width()} * height() / 8 > bytes.size() * std::uint64_t{1032})
            refuse_picture(name, fmt::format("its header tells of {} x {} pixels, which {} bytes cannot hold", width(), height(),
                                             bytes.size()));
    }
    ~png_reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
    png_reader(png_reader const&) = delete;
    png_reader& operator=(png_reader const&) = delete;

    picture_header header() const {
        bool const colour = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0;
        return {{colour ? std::size_t{3} : std::size_t{1}, height(), width(), false}, orientation_};
    }
    picture read() {
        if (!begin_rows()) fail();
        picture made{width(), height(), png_get_channels(png_, info_), {}};
        made.pixels.resize(made.width * made.height * made.channels);
        std::vector<png_bytep> rows(made.height);
        for (std::size_t y = 0; y < made.height; ++y) rows[y] = made.pixels.data() + y * made.width * made.channels;
        if (!read_rows(rows.data())) fail();
        return made;
    }

  private:
    /// Made first, so that the destructor runs where the rest of a constructor fails.
    explicit png_reader(std::string const& name) : name_(name) {
        png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input_, png_failed, png_warned);
        if (png_ != nullptr) info_ = png_create_info_struct(png_);
    }
    std::size_t width() const { return png_get_image_width(png_, info_); }
    std::size_t height() const { return png_get_image_height(png_, info_); }

    bool read_header() {
        if (setjmp(png_jmpbuf(png_)) != 0) return false;
        png_set_read_fn(png_, &input_, png_give);
        png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
        png_read_info(png_, info_);
#ifdef PNG_eXIf_SUPPORTED
        png_bytep exif = nullptr;
        png_uint_32 bytes = 0;
        if (png_get_eXIf_1(png_, info_, &bytes, &exif) != 0) orientation_ = exif_orientation({exif, bytes});
#endif
        return true;
    }
    /// Everything becomes samples of 8 bits: of 16 bits the upper ones, of 1, 2 and 4 spread to 0 … 255, colours of a palette as they
    /// stand in it. What gAMA, cHRM, sRGB and iCCP say is left alone.
    bool begin_rows() {
        if (setjmp(png_jmpbuf(png_)) != 0) return false;
        png_set_expand(png_);
        png_set_strip_16(png_);
        png_set_interlace_handling(png_);
        png_read_update_info(png_, info_);
        return png_get_rowbytes(png_, info_) == width() * png_get_channels(png_, info_);
    }
    bool read_rows(png_bytepp rows) {
        if (setjmp(png_jmpbuf(png_)) != 0) return false;
        png_read_image(png_, rows);
        return true;
    }
    [[noreturn]] void fail() const {
        refuse_picture(name_, fmt::format("PNG: {}", without_controls(input_.message)));
    }

    std::string const& name_;
    png_input input_;
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    int orientation_ = 1;
};

}  // namespace

picture_header read_png_header(std::span<std::uint8_t const> bytes, std::string const& name) {
    return png_reader(bytes, name).header();
}

picture read_png_pixels(std::span<std::uint8_t const> bytes, std::string const& name) {
    return png_reader(bytes, name).read();
}

}  // namespace muster
