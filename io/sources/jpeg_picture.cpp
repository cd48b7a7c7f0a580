#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <vector>

// After <cstdio>, whose names they use.
#include <jpeglib.h>
// This header follows <jpeglib.h>.
#include <jerror.h>

#include "base/text.hpp"
#include "io/sources/image_file.hpp"

namespace muster {

namespace {

struct jpeg_failure : jpeg_error_mgr {
    std::jmp_buf back;
    char message[JMSG_LENGTH_MAX];
};

/// Warnings that pixels are missing or wrong. All others are of what stands around them: bytes before a marker, an unknown revision.
bool is_damage(int warning) {
    return warning == JWRN_HIT_MARKER || warning == JWRN_HUFF_BAD_CODE || warning == JWRN_JPEG_EOF ||
           warning == JWRN_MUST_RESYNC || warning == JWRN_ARITH_BAD_CODE;
}

extern "C" void jpeg_failed(j_common_ptr info) {
    auto* const failure = static_cast<jpeg_failure*>(info->err);
    info->err->format_message(info, failure->message);
    std::longjmp(failure->back, 1);
}
extern "C" void jpeg_silent(j_common_ptr) {}
extern "C" void jpeg_warned(j_common_ptr info, int level) {
    if (level < 0 && is_damage(info->err->msg_code)) jpeg_failed(info);
}

/// libjpeg reports failures by a jump: what has a destructor lives outside of the functions that jump.
class jpeg_reader {
  public:
    jpeg_reader(std::span<std::uint8_t const> bytes, std::string const& name) : jpeg_reader(name) {
        if (!read_header(bytes)) fail();
        check_picture_size(name, info_.image_width, info_.image_height);
    }
    ~jpeg_reader() { jpeg_destroy_decompress(&info_); }
    jpeg_reader(jpeg_reader const&) = delete;
    jpeg_reader& operator=(jpeg_reader const&) = delete;

    picture_header header() const { return {{channels(), info_.image_height, info_.image_width, false}, orientation()}; }
    picture read() {
        bool const inks = info_.num_components == 4;
        if (!inks && info_.num_components != 1 && info_.num_components != 3)
            refuse_picture(name_, fmt::format("a JPEG of {} components", info_.num_components), "make it RGB first");
        picture made{info_.image_width, info_.image_height, channels(), {}};
        made.pixels.resize(made.width * made.height * made.channels);
        std::vector<std::uint8_t> row(inks ? made.width * 4 : 0);
        if (!read_rows(made, row.data())) fail();
        return made;
    }

  private:
    /// Made first, so that the destructor runs where the rest of a constructor fails.
    explicit jpeg_reader(std::string const& name) : name_(name) {
        info_.err = jpeg_std_error(&failure_);
        failure_.error_exit = jpeg_failed;
        failure_.output_message = jpeg_silent;
        failure_.emit_message = jpeg_warned;
        jpeg_create_decompress(&info_);
    }
    std::size_t channels() const { return info_.num_components == 1 ? 1 : 3; }
    int orientation() const {
        static constexpr std::uint8_t magic[] = {'E', 'x', 'i', 'f', 0, 0};
        for (jpeg_saved_marker_ptr marker = info_.marker_list; marker != nullptr; marker = marker->next)
            if (std::span const data(marker->data, marker->data_length);
                data.size() >= sizeof magic && std::equal(std::begin(magic), std::end(magic), data.begin()))
                return exif_orientation(data.subspan(sizeof magic));
        return 1;
    }
    bool read_header(std::span<std::uint8_t const> bytes) {
        if (setjmp(failure_.back) != 0) return false;
        jpeg_mem_src(&info_, bytes.data(), bytes.size());
        jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xffff);
        return jpeg_read_header(&info_, 1) == JPEG_HEADER_OK;
    }
    /// Reads all rows, and does not look at what follows the last one: no pixel depends on it.
    bool read_rows(picture& made, std::uint8_t* inks) {
        if (setjmp(failure_.back) != 0) return false;
        bool const four = info_.num_components == 4;
        info_.out_color_space = four ? JCS_CMYK : made.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_start_decompress(&info_);
        while (info_.output_scanline < info_.output_height) {
            JSAMPROW const to = made.pixels.data() + std::size_t{info_.output_scanline} * made.width * made.channels;
            JSAMPROW row = four ? inks : to;
            jpeg_read_scanlines(&info_, &row, 1);
            if (four) light_of_inks(inks, made.width, to);
        }
        return true;
    }
    /// The inks are stored as Adobe's programs do, 255 for none.
    static void light_of_inks(std::uint8_t const* inks, std::size_t width, std::uint8_t* to) {
        for (std::size_t x = 0; x < width; ++x)
            for (std::size_t c = 0; c < 3; ++c) {
                unsigned const light = inks[x * 4 + 3];
                to[x * 3 + c] = static_cast<std::uint8_t>(light - times_255th(255u - inks[x * 4 + c], light));
            }
    }
    [[noreturn]] void fail() const { refuse_picture(name_, fmt::format("JPEG: {}", without_controls(failure_.message))); }

    std::string const& name_;
    jpeg_decompress_struct info_{};
    jpeg_failure failure_{};
};

}  // namespace

picture_header read_jpeg_header(std::span<std::uint8_t const> bytes, std::string const& name) {
    return jpeg_reader(bytes, name).header();
}

picture read_jpeg_pixels(std::span<std::uint8_t const> bytes, std::string const& name) {
    return jpeg_reader(bytes, name).read();
}

int exif_orientation(std::span<std::uint8_t const> tiff) {
    if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
    bool const big = tiff[0] == 'M';
    auto const number = [&](std::size_t at, std::size_t bytes) {
        std::size_t value = 0;
        for (std::size_t i = 0; i < bytes; ++i) value |= std::size_t{tiff[at + i]} << 8 * (big ? bytes - 1 - i : i);
        return value;
    };
    std::size_t const directory = number(4, 4);
    if (directory + 2 > tiff.size()) return 1;
    std::size_t const entries = number(directory, 2);
    for (std::size_t i = 0, at = directory + 2; i < entries && at + 12 <= tiff.size(); ++i, at += 12)
        if (std::size_t const value = number(at + 8, 2); number(at, 2) == 0x0112 && value >= 1 && value <= 8)
            return static_cast<int>(value);
    return 1;
}

}  // namespace muster
