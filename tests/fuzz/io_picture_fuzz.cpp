// links: muster::io
// iterations: 5000
// Any bytes as a PNG, JPEG or WebP picture: its size as the header tells it, its pixels, or an error that says something.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/error.hpp"
#include "io/sources/image_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    try {
        std::span<std::uint8_t const> const bytes(data, size);
        muster::image_shape const shape = muster::probe_picture(bytes, "fuzz.png").shape;
        if (shape.elements() > (std::size_t{1} << 22)) return 0;
        muster::picture const made = muster::decode_picture(bytes, "fuzz.png", size % 2 == 0 ? 1 : 3);
        if (made.width != shape.width || made.height != shape.height ||
            made.pixels.size() != made.width * made.height * made.channels)
            std::abort();
        if (muster::resized(made, 5, 7).pixels.size() != 35 * made.channels) std::abort();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::invalid_data || std::string(e.what()).size() < 20) std::abort();
    }
    return 0;
}
