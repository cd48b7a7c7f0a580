#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "io/sources/image_file.hpp"

namespace muster {

namespace {

template <auto Free>
struct freed_by {
    template <class T>
    void operator()(T* what) const {
        Free(what);
    }
};
using webp_demuxer = std::unique_ptr<WebPDemuxer, freed_by<WebPDemuxDelete>>;
using webp_animation = std::unique_ptr<WebPAnimDecoder, freed_by<WebPAnimDecoderDelete>>;

[[noreturn]] void refuse_webp(std::string const& name, std::string_view what) {
    refuse_picture(name, fmt::format("WebP: {}", what));
}

WebPBitstreamFeatures webp_features(std::span<std::uint8_t const> bytes, std::string const& name) {
    WebPBitstreamFeatures found{};
    switch (WebPGetFeatures(bytes.data(), bytes.size(), &found)) {
        case VP8_STATUS_OK: break;
        case VP8_STATUS_NOT_ENOUGH_DATA: refuse_webp(name, "the file ends too early");
        default: refuse_webp(name, "its header is damaged");
    }
    check_picture_size(name, static_cast<std::uint64_t>(found.width), static_cast<std::uint64_t>(found.height));
    return found;
}

/// Some programs write JPEG's "Exif\0\0" before the data.
int webp_orientation(std::span<std::uint8_t const> bytes) {
    WebPData const data{bytes.data(), bytes.size()};
    webp_demuxer const demuxer(WebPDemux(&data));
    WebPChunkIterator chunk{};
    if (!demuxer || WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) == 0) return 1;
    std::span<std::uint8_t const> exif(chunk.chunk.bytes, chunk.chunk.size);
    if (exif.size() > 6 && std::memcmp(exif.data(), "Exif\0", 6) == 0) exif = exif.subspan(6);
    int const orientation = exif_orientation(exif);
    WebPDemuxReleaseChunkIterator(&chunk);
    return orientation;
}

/// Reads the first picture, on a canvas that is transparent where that one is smaller.
void read_first_of_animation(std::span<std::uint8_t const> bytes, std::string const& name, picture& made) {
    WebPData const data{bytes.data(), bytes.size()};
    WebPAnimDecoderOptions options{};
    if (WebPAnimDecoderOptionsInit(&options) == 0) refuse_webp(name, "libwebpdemux has another version than its headers");
    options.color_mode = MODE_RGBA;
    webp_animation const animation(WebPAnimDecoderNew(&data, &options));
    std::uint8_t* canvas = nullptr;
    int time_ms = 0;
    if (!animation || WebPAnimDecoderGetNext(animation.get(), &canvas, &time_ms) == 0)
        refuse_webp(name, "the first picture of the animation is damaged");
    std::copy_n(canvas, made.pixels.size(), made.pixels.data());
}

}  // namespace

picture_header read_webp_header(std::span<std::uint8_t const> bytes, std::string const& name) {
    WebPBitstreamFeatures const found = webp_features(bytes, name);
    return {{3, static_cast<std::size_t>(found.height), static_cast<std::size_t>(found.width), false}, webp_orientation(bytes)};
}

picture read_webp_pixels(std::span<std::uint8_t const> bytes, std::string const& name) {
    WebPBitstreamFeatures const found = webp_features(bytes, name);
    bool const four = found.has_alpha != 0 || found.has_animation != 0;
    picture made{static_cast<std::size_t>(found.width), static_cast<std::size_t>(found.height), four ? 4u : 3u, {}};
    made.pixels.resize(made.width * made.height * made.channels);
    if (found.has_animation != 0) {
        read_first_of_animation(bytes, name, made);
        return made;
    }
    auto const decode = four ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
    if (decode(bytes.data(), bytes.size(), made.pixels.data(), made.pixels.size(),
               static_cast<int>(made.width * made.channels)) == nullptr)
        refuse_webp(name, "its pixels are damaged, or the file ends too early");
    return made;
}

}  // namespace muster
