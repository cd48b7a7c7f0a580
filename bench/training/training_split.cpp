#include "bench/training/training_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "io/dataset/dataset.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

namespace {

/// Of a dataset file, through the loader.
class dataset_split : public training_split {
  public:
    dataset_split(split_request const& request, dataset const& file, identity const& who)
        : source_(request.data),
          batches_(file, sampler(file.size(), {.seed = request.seed, .shuffle = request.shuffle}),
                   [&] {
                       loader_options settings;
                       settings.batch = static_cast<std::size_t>(request.batch);
                       settings.rank = who.rank;
                       settings.world = who.world_size;
                       settings.local_size = who.local_size;
                       return settings;
                   }()),
          size_(file.size()) {}

    std::size_t size() const noexcept override { return size_; }
    std::string const& source() const noexcept override { return source_; }
    std::size_t begin(std::uint64_t epoch) override {
        range_.emplace(batches_.epoch(epoch));
        at_.reset();
        return range_->size();
    }
    batch const* next() override {
        if (at_)
            ++*at_;
        else
            at_.emplace(range_->begin());
        return *at_ == range_->end() ? nullptr : &**at_;
    }

  private:
    std::string source_;
    loader batches_;
    std::size_t size_;
    std::optional<loader::epoch_range> range_;
    std::optional<loader::iterator> at_;
};

/// Of images in this rank's own memory.
class memory_split : public training_split {
  public:
    memory_split(split_request const& request, std::string source, std::vector<std::uint8_t> images,
                 std::vector<std::uint8_t> labels, identity const& who)
        : source_(std::move(source)),
          order_(labels.size(), {.seed = request.seed, .shuffle = request.shuffle}),
          images_(std::move(images)),
          labels_(std::move(labels)),
          batch_(static_cast<std::size_t>(request.batch)),
          world_(static_cast<std::size_t>(who.world_size)) {
        part_.rank = who.rank;
        part_.world = who.world_size;
        samples_.resize(batch_);
        batch_labels_.resize(batch_);
        batch_images_.resize(batch_ * image_bytes());
    }

    std::size_t size() const noexcept override { return labels_.size(); }
    std::string const& source() const noexcept override { return source_; }
    std::size_t begin(std::uint64_t epoch) override {
        part_.epoch = epoch;
        step_ = 0;
        own_ = order_.count(part_);
        return (size() + batch_ * world_ - 1) / (batch_ * world_);
    }

    batch const* next() override {
        auto const images_until = [&](std::size_t step) { return std::min(size(), step * batch_ * world_); };
        current_.global_count = images_until(step_ + 1) - images_until(step_);
        if (current_.global_count == 0) return nullptr;
        std::size_t const first = std::min(own_, step_ * batch_);
        current_.count = std::min(batch_, own_ - first);
        current_.first_sample = first;
        gather(first);
        ++step_;
        return &current_;
    }

  private:
    std::size_t image_bytes() const noexcept { return images_.size() / labels_.size(); }

    void gather(std::size_t first) {
        auto const samples = std::span(samples_).first(current_.count);
        order_.fill(part_, first, samples);
        for (std::size_t i = 0; i < samples.size(); ++i) {
            std::copy_n(images_.data() + samples[i] * image_bytes(), image_bytes(), batch_images_.data() + i * image_bytes());
            batch_labels_[i] = labels_[samples[i]];
        }
        current_.samples = samples;
        current_.images = std::span(batch_images_).first(current_.count * image_bytes());
        current_.labels = std::span(batch_labels_).first(current_.count);
    }

    std::string source_;
    sampler order_;
    std::vector<std::uint8_t> images_, labels_;
    std::size_t batch_, world_;
    epoch_part part_;
    std::size_t own_ = 0, step_ = 0;
    batch current_;
    std::vector<std::uint64_t> samples_;
    std::vector<std::uint8_t> batch_images_, batch_labels_;
};

std::unique_ptr<training_split> open_dataset(split_request const& request, image_input const& input, identity const& who) {
    auto const file = dataset::open(request.data, request.split);
    auto const shape = file.shape();
    image_shape const wanted{static_cast<std::size_t>(input.channels), static_cast<std::size_t>(input.height),
                             static_cast<std::size_t>(input.width)};
    if (shape != wanted || file.classes() > static_cast<std::size_t>(input.classes) || file.size() == 0 ||
        file.info().type != element_type::u8 || file.label_bytes() != 1)
        throw error(
            errc::invalid_data,
            fmt::format("{}: split '{}' holds {} images of {}x{}x{} in {} classes; this network takes {}x{}x{} bytes in at "
                        "most {} classes ({}); give another file, or another --net",
                        request.data, request.split, file.size(), shape.channels, shape.height, shape.width, file.classes(),
                        input.channels, input.height, input.width, input.classes,
                        input.channels == 1 ? "MNIST, Fashion-MNIST" : "CIFAR-10"));
    return std::make_unique<dataset_split>(request, file, who);
}

std::unique_ptr<training_split> open_cifar_folder(split_request const& request, image_input const& input, identity const& who) {
    if (input.channels != 3)
        throw error(errc::usage,
                    fmt::format("--data '{}' is a folder, as of CIFAR-10's binary files, but this network takes images of "
                                "{} channel; give --net cifar10, or a dataset file",
                                request.data, input.channels));
    source_options options;
    options.format = source_format::cifar10;
    for (auto& found : open_sources({"", request.data, ""}, options)) {
        if (found.split != request.split) continue;
        auto const count = found.source->facts().samples;
        std::vector<std::uint8_t> images(count * static_cast<std::size_t>(input.bytes()));
        std::vector<std::uint32_t> wide(count);
        found.source->read({0, count}, images, wide);
        std::vector<std::uint8_t> labels;
        for (std::size_t i = 0; i < count; ++i) {
            if (wide[i] >= static_cast<std::uint32_t>(input.classes))
                found.source->fail_label(i, wide[i], static_cast<std::size_t>(input.classes));
            labels.push_back(static_cast<std::uint8_t>(wide[i]));
        }
        return std::make_unique<memory_split>(request, "CIFAR-10 binary files in " + request.data, std::move(images),
                                              std::move(labels), who);
    }
    throw error(errc::not_found, fmt::format("{}: no '{}' images of CIFAR-10 there; it must hold data_batch_1.bin to "
                                             "data_batch_5.bin and test_batch.bin",
                                             request.data, request.split));
}

std::unique_ptr<training_split> generate(split_request const& request, image_input const& input, identity const& who) {
    auto const bytes = static_cast<std::size_t>(input.bytes());
    std::vector<std::uint8_t> images(request.generated_images * bytes), labels(request.generated_images);
    // The seed is the data's own, not the training's: another seed of training has the same images.
    std::uint64_t const first = request.split == "train" ? 0 : 1'000'000'000;
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = generate_image(1, first + i, input, std::span(images).subspan(i * bytes, bytes));
    return std::make_unique<memory_split>(request,
                                          fmt::format("generated images of {}x{}x{}", input.channels, input.height, input.width),
                                          std::move(images), std::move(labels), who);
}

}  // namespace

std::uint8_t generate_image(std::uint64_t seed, std::uint64_t index, image_input const& input, std::span<std::uint8_t> pixels) {
    random_stream const own(seed, 200, index);
    auto const label = static_cast<std::uint8_t>(own.bits(0) % static_cast<std::uint64_t>(input.classes));
    random_stream const of_class(seed, 201, label);
    std::uint64_t draw = 1;
    std::size_t at = 0;
    for (int c = 0; c < input.channels; ++c) {
        // A coarse picture of 4 x 4 fields, the class', moved by up to 3 pixels.
        int const field_y = (input.height + 3) / 4, field_x = (input.width + 3) / 4;
        int const move_y = static_cast<int>(own.bits(draw++) % 4), move_x = static_cast<int>(own.bits(draw++) % 4);
        for (int y = 0; y < input.height; ++y) {
            std::uint64_t noise = 0;
            for (int x = 0; x < input.width; ++x, ++at) {
                if (x % 8 == 0) noise = own.bits(draw++);
                int const fy = std::min(3, (y + move_y) / field_y), fx = std::min(3, (x + move_x) / field_x);
                auto const field = static_cast<std::uint64_t>((c * 4 + fy) * 4 + fx);
                int const bright = static_cast<int>(of_class.bits(field) % 64);
                pixels[at] = static_cast<std::uint8_t>(bright + static_cast<int>((noise >> (8 * (x % 8))) & 255) * 3 / 4);
            }
        }
    }
    return label;
}

std::unique_ptr<training_split> open_training_split(split_request const& request, image_input const& input, identity const& who) {
    if (request.data.empty()) return generate(request, input, who);
    std::error_code ignored;
    if (std::filesystem::is_directory(request.data, ignored)) return open_cifar_folder(request, input, who);
    return open_dataset(request, input, who);
}

}  // namespace muster
