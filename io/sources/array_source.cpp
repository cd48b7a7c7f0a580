#include "io/sources/array_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace muster {

namespace {

constexpr std::size_t label_piece = 1 << 20;

bool may_be_channels(std::uint64_t dimension) {
    return dimension == 1 || dimension == 3 || dimension == 4;
}

std::string shape_text(array_form const& form) {
    std::string text;
    for (std::uint64_t const dimension : form.dimensions) text += fmt::format("{}{}", text.empty() ? "" : " x ", dimension);
    return text;
}

/// Labels as they are stored, as numbers.
void read_labels(item_array& from, hyperslab rows, std::span<std::uint32_t> out, std::vector<std::uint8_t>& buffer) {
    buffer.resize(rows.count * from.item_bytes());
    from.read(rows, buffer);
    element_type const type = from.form().type;
    if (type == element_type::u8) {
        std::copy(buffer.begin(), buffer.end(), out.begin());
        return;
    }
    for (std::size_t i = 0; i < rows.count; ++i) {
        double const value = element_at(type, buffer, i);
        if (!(value >= 0 && value < 4294967295.0) || value != std::floor(value))
            from.fail({from.offset_of(rows.first + i), "label", fmt::format("{} for item {}", value, rows.first + i),
                       "a whole number from 0", "give the classes as whole numbers"});
        out[i] = static_cast<std::uint32_t>(value);
    }
}

void channels_first(std::span<std::uint8_t const> from, image_shape const& shape, std::size_t element, std::uint8_t* to) {
    std::size_t const pixels = shape.height * shape.width;
    for (std::size_t channel = 0; channel < shape.channels; ++channel)
        for (std::size_t pixel = 0; pixel < pixels; ++pixel)
            std::memcpy(to + (channel * pixels + pixel) * element, from.data() + (pixel * shape.channels + channel) * element,
                        element);
}

}  // namespace

array_source::array_source(array_opener const& open_images, array_opener open_labels, dimension_order order)
    : images_(open_images()), open_labels_(std::move(open_labels)) {
    if (images_->form().dimensions.empty() || images_->items() == 0 || images_->item_bytes() == 0)
        images_->fail({0, "shape", images_->form().dimensions.empty() ? "a single number" : shape_text(images_->form()),
                       "an array of at least one sample", "give another file"});
    set_shape(order);
    facts_.samples = images_->items();
    facts_.type = images_->form().type;
    facts_.images = std::filesystem::path(images_->name()).filename().string();
    facts_.labelled = open_labels_ != nullptr;
    if (!open_labels_) return;
    labels_ = open_labels_();
    facts_.labels = std::filesystem::path(labels_->name()).filename().string();
    auto const& dimensions = labels_->form().dimensions;
    if (dimensions.empty() || dimensions.size() > 2 || (dimensions.size() == 2 && dimensions[1] != 1))
        labels_->fail({0, "rank", dimensions.empty() ? "a single number" : shape_text(labels_->form()),
                       "one label a sample (N, or N x 1)",
                       "give the array of labels; one-hot rows are to be made numbers first (argmax)"});
    if (labels_->items() != images_->items())
        labels_->fail({4, "label count", fmt::format("{}", labels_->items()),
                       fmt::format("{}, the number of images in {}", images_->items(), images_->name()),
                       "give the two files of one split, not of train and test mixed"});
}

void array_source::set_shape(dimension_order order) {
    std::vector<std::size_t> const sizes(images_->form().dimensions.begin() + 1, images_->form().dimensions.end());
    if (sizes.size() > 3)
        images_->fail({0, "rank", fmt::format("{}", sizes.size() + 1), "at most 4 dimensions (samples, then up to three)",
                       "reshape it to four first"});
    if (sizes.size() < 3) {
        facts_.shape = {1, sizes.size() > 1 ? sizes[0] : 1, sizes.empty() ? 1 : sizes.back()};
        return;
    }
    if (order == dimension_order::automatic) {
        bool const first = may_be_channels(sizes[0]);
        bool const last = may_be_channels(sizes[2]);
        if (first == last)
            throw error(errc::usage,
                        fmt::format("{}: samples of {}: channels may come first or last; give --order chw or --order hwc",
                                    images_->name(), fmt::format("{} x {} x {}", sizes[0], sizes[1], sizes[2])));
        order = first ? dimension_order::chw : dimension_order::hwc;
    }
    channels_last_ = order == dimension_order::hwc;
    facts_.shape = channels_last_ ? image_shape{sizes[2], sizes[0], sizes[1]} : image_shape{sizes[0], sizes[1], sizes[2]};
}

std::vector<std::string> array_source::files() const {
    std::vector<std::string> all = images_->files();
    if (labels_)
        for (std::string& file : labels_->files())
            if (std::find(all.begin(), all.end(), file) == all.end()) all.push_back(std::move(file));
    return all;
}

void array_source::read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) {
    if (channels_last_ && facts_.shape.channels > 1) {
        buffer_.resize(images.size());
        images_->read(rows, buffer_);
        std::size_t const bytes = images_->item_bytes();
        for (std::size_t i = 0; i < rows.count; ++i)
            channels_first(std::span<std::uint8_t const>(buffer_).subspan(i * bytes, bytes), facts_.shape, bytes_of(facts_.type),
                           images.data() + i * bytes);
    } else {
        images_->read(rows, images);
    }
    if (labels_) read_labels(*labels_, rows, labels, buffer_);
}

void array_source::finish() {
    images_->finish();
    if (labels_) labels_->finish();
}

std::uint32_t array_source::largest_label() {
    if (!labels_) return 0;
    std::unique_ptr<item_array> const again = open_labels_();  // the other one is to read from its beginning later
    std::vector<std::uint32_t> piece(std::min(again->items(), label_piece));
    std::uint32_t largest = 0;
    for (std::size_t first = 0; first < again->items(); first += piece.size()) {
        std::size_t const count = std::min(piece.size(), again->items() - first);
        read_labels(*again, {first, count}, std::span(piece).first(count), buffer_);
        largest = std::max(largest, *std::max_element(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count)));
    }
    return largest;
}

void array_source::fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const {
    labels_->fail({labels_->offset_of(sample), "label", fmt::format("{} for item {}", label, sample),
                   fmt::format("below {}, the number of classes", classes),
                   "give the right --classes, or another file of labels"});
}

}  // namespace muster
