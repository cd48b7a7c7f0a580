#include "base/throw_error.hpp"
#include "io/sources/file_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
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

/// Labels as they are stored, as numbers, `each` given the number and its item.
template <typename Each>
void each_label(item_array& from, hyperslab rows, std::vector<std::uint8_t>& buffer, Each&& each) {
    buffer.resize(rows.count * from.item_bytes());
    from.read(rows, buffer);
    for (std::size_t i = 0; i < rows.count; ++i) each(element_at(from.form().type, buffer, i), rows.first + i);
}

std::uint32_t class_of(item_array const& from, double value, std::size_t item) {
    if (value >= 0 && value < 4294967295.0 && value == std::floor(value)) return static_cast<std::uint32_t>(value);
    from.fail({from.offset_of(item), "label", fmt::format("{} for item {}", value, item), "a whole number from 0",
               "give the classes as whole numbers, or --label-type float if these are targets of a regression"});
}

std::uint32_t target_of(item_array const& from, double value, std::size_t item) {
    if (std::isfinite(static_cast<float>(value))) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    from.fail({from.offset_of(item), "label", fmt::format("{} for item {}", value, item), "a number that float32 holds",
               "leave the sample out, or give it a target"});
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
    if (auto note = images_->note(); !note.empty()) add_note(std::move(note));
    if (!open_labels_) return;
    labels_ = open_labels_();
    if (auto note = labels_->note(); !note.empty()) add_note(std::move(note));
    facts_.labels = std::filesystem::path(labels_->name()).filename().string();
    auto const& dimensions = labels_->form().dimensions;
    if (dimensions.empty() || std::any_of(dimensions.begin() + 1, dimensions.end(), [](std::uint64_t size) { return size != 1; }))
        labels_->fail({0, "rank", dimensions.empty() ? "a single number" : shape_text(labels_->form()),
                       "one label a sample (N, N x 1, …)",
                       "give the array of labels; one-hot rows are to be made numbers first (argmax)"});
    if (labels_->items() != images_->items())
        labels_->fail({4, "label count", fmt::format("{}", labels_->items()),
                       fmt::format("{}, the number of images in {}", images_->items(), images_->name()),
                       "give the two files of one split, not of train and test mixed"});
    for (auto const& [value, name] : labels_->names()) {
        value_of_.push_back(static_cast<double>(value));
        facts_.class_names.push_back(name);
    }
    facts_.classes = facts_.class_names.size();
}

void array_source::set_shape(dimension_order order) {
    std::vector<std::size_t> const sizes(images_->form().dimensions.begin() + 1, images_->form().dimensions.end());
    if (sizes.size() > 3)
        images_->fail({0, "rank", fmt::format("{}", sizes.size() + 1), "at most 4 dimensions (samples, then up to three)",
                       "reshape it to four first"});
    if (sizes.size() < 3) {
        facts_.shape = {1, sizes.size() > 1 ? sizes[0] : 1, sizes.empty() ? 1 : sizes.back(), sizes.size() < 2};
        return;
    }
    if (order == dimension_order::automatic) {
        bool const first = may_be_channels(sizes[0]);
        bool const last = may_be_channels(sizes[2]);
        if (first == last)
            throw_error(errc::usage, "{}: samples of {}: channels may come first or last; give --order chw or --order hwc",
                        images_->name(), fmt::format("{} x {} x {}", sizes[0], sizes[1], sizes[2]));
        order = first ? dimension_order::chw : dimension_order::hwc;
    }
    channels_last_ = order == dimension_order::hwc;
    facts_.shape =
        channels_last_ ? image_shape{sizes[2], sizes[0], sizes[1], false} : image_shape{sizes[0], sizes[1], sizes[2], false};
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
    if (!labels_) return;
    if (element_type const type = labels_->form().type; type == element_type::u8 && !targets_ && value_of_.empty()) {
        buffer_.resize(rows.count);
        labels_->read(rows, buffer_);
        std::copy(buffer_.begin(), buffer_.end(), labels.begin());
        return;
    }
    each_label(*labels_, rows, buffer_, [&](double value, std::size_t item) {
        std::uint32_t& to = labels[item - rows.first];
        to = targets_            ? target_of(*labels_, value, item)
             : value_of_.empty() ? class_of(*labels_, value, item)
                                 : class_by_name(value, item);
    });
}

/// The class of an element of an enumeration: its place among the values.
std::uint32_t array_source::class_by_name(double value, std::size_t item) const {
    auto const at = std::lower_bound(value_of_.begin(), value_of_.end(), value);
    if (at != value_of_.end() && *at == value) return static_cast<std::uint32_t>(at - value_of_.begin());
    labels_->fail({labels_->offset_of(item), "label", fmt::format("{} for item {}", value, item),
                   "a value that its enumeration names", "write the labels anew"});
}

void array_source::finish() {
    images_->finish();
    if (labels_) labels_->finish();
}

label_scan array_source::scan_labels() {
    label_scan found;
    if (!labels_) return found;
    std::unique_ptr<item_array> const again = open_labels_();  // the other one is to read from its beginning later
    bool const real = is_real(again->form().type);
    for (std::size_t first = 0; first < again->items(); first += label_piece) {
        hyperslab const rows{first, std::min(label_piece, again->items() - first)};
        each_label(*again, rows, buffer_, [&](double value, std::size_t item) {
            if (real && value != std::floor(value)) {
                target_of(*again, value, item);
                if (found.no_class.empty()) found.no_class = fmt::format("{}", value);
            } else if (found.no_class.empty()) {
                found.add(class_of(*again, value, item));
            }
        });
    }
    return found;
}

void array_source::fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const {
    labels_->fail({labels_->offset_of(sample), "label", fmt::format("{} for item {}", label, sample),
                   fmt::format("below {}, the number of classes", classes),
                   "give the right --classes, or another file of labels"});
}

}  // namespace muster
