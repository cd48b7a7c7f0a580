#include "io/stage/preview.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster::stage {

namespace {

constexpr std::size_t widest_sheet = 4096;
constexpr std::size_t most_elements = std::size_t{1} << 24;  ///< of a sample to show

/// The samples shown, as bytes.
std::vector<std::uint8_t> as_bytes(element_type type, std::vector<std::uint8_t> elements) {
    if (type == element_type::u8) return elements;
    value_range const range = range_of(type, elements);
    double const span = range.most > range.least ? range.most - range.least : 1;
    std::vector<std::uint8_t> shown(elements.size() / bytes_of(type));
    for (std::size_t i = 0; i < shown.size(); ++i) {
        double const value = (element_at(type, elements, i) - range.least) / span;
        shown[i] = static_cast<std::uint8_t>(std::isfinite(value) ? std::clamp(value * 255 + 0.5, 0.0, 255.0) : 0);
    }
    return shown;
}

}  // namespace

picture contact_sheet(dataset const& from, std::size_t most) {
    image_shape const shape = from.shape();
    if (shape.elements() > most_elements || shape.width > widest_sheet || shape.height > widest_sheet)
        throw error(errc::usage, from.info().path + ": /" + from.info().split + ": its samples of " + to_string(shape) +
                                     " are too large for a contact sheet; convert it with --resize to see it");
    std::size_t const fits = std::max<std::size_t>(1, widest_sheet / (shape.width + 1));
    std::size_t const count = std::min(from.size(), std::min(most, std::max<std::size_t>(1, most_elements / shape.elements())));
    auto const columns = std::min(fits, static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count)))));
    std::size_t const rows = (count + columns - 1) / columns;
    std::vector<std::uint8_t> elements(count * from.image_bytes());
    for (std::size_t i = 0; i < count; ++i)
        from.read(i * from.size() / count, 1, std::span(elements).subspan(i * from.image_bytes(), from.image_bytes()), {});
    std::vector<std::uint8_t> const shown = as_bytes(from.info().type, std::move(elements));

    std::size_t const channels = shape.channels >= 3 ? 3 : 1;
    picture sheet{columns * (shape.width + 1) + 1, rows * (shape.height + 1) + 1, channels, {}};
    sheet.pixels.assign(sheet.width * sheet.height * channels, 128);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < channels; ++c)
            for (std::size_t y = 0; y < shape.height; ++y)
                for (std::size_t x = 0; x < shape.width; ++x) {
                    std::size_t const row = i / columns * (shape.height + 1) + 1 + y;
                    std::size_t const column = i % columns * (shape.width + 1) + 1 + x;
                    sheet.pixels[(row * sheet.width + column) * channels + c] =
                        shown[(i * shape.channels + c) * shape.height * shape.width + y * shape.width + x];
                }
    return sheet;
}

}  // namespace muster::stage
