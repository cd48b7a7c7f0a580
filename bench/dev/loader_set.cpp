#include "bench/dev/loader_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "bench/tools/statistics.hpp"
#include "io/convert/convert.hpp"
#include "io/dataset/checksum.hpp"
#include "io/loader/windowed_order.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

/// Adds seconds while it runs.
class loading_watch {
  public:
    void start() { began_ = clock::now(); }
    void stop() { seconds_ += std::chrono::duration<double>(clock::now() - began_).count(); }
    double seconds() const { return seconds_; }

  private:
    clock::time_point began_;
    double seconds_ = 0;
};

}  // namespace

loader_set::loader_set(std::string const& path, std::size_t per_batch)
    : data_(dataset::open(path)),
      order_(data_.size(), {}),
      batch_(per_batch),
      bytes_(data_.size() * data_.image_bytes()),
      source_(mapped_memory::allocate(bytes_)),
      target_(mapped_memory::allocate(bytes_)) {
    data_.read(0, data_.size(), source_.bytes(), {});
    for (std::size_t i = 0; i < data_.size(); ++i)
        checksums_.push_back(xxh3_64(source_.bytes().subspan(i * data_.image_bytes(), data_.image_bytes())));
    rows_.push_back({"memcpy in batches", [this](std::uint64_t) { return copy_in_batches(); }, {}});
    rows_.push_back({"memcpy at once", [this](std::uint64_t) { return copy_at_once(); }, {}});
    for (memory_mode const memory : {memory_mode::whole, memory_mode::mapped})
        for (std::size_t const prefetch : {std::size_t{0}, std::size_t{3}}) add_loader(memory, prefetch);
}

double loader_set::memcpy_in_batches() const {
    return median(rows_.at(0).gbps);
}
double loader_set::memcpy_at_once() const {
    return median(rows_.at(1).gbps);
}

void loader_set::add_loader(memory_mode memory, std::size_t prefetch) {
    if (memory == memory_mode::mapped && !data_.info().image_offset) return;
    auto const from =
        std::make_shared<loader>(data_, order_, loader_options{.batch = batch_, .memory = memory, .prefetch = prefetch});
    std::string const name =
        fmt::format("loader {}, {}", to_string(memory), prefetch == 0 ? "no thread" : fmt::format("{} ahead", prefetch));
    rows_.push_back({name,
                     [this, from, prefetch](std::uint64_t epoch) {
                         return prefetch == 0 ? deliver(*from, epoch) : deliver_ahead(*from, epoch);
                     },
                     {}});
}

void loader_set::damaged(std::string_view what) const {
    throw error(errc::invalid_data,
                fmt::format("{}: {} delivered other bytes than the dataset has; please report this fault in muster",
                            data_.info().path, what));
}

std::size_t loader_set::check(batch const& given) const {
    std::size_t const size = data_.image_bytes();
    for (std::size_t i = 0; i < given.count; ++i)
        if (xxh3_64(given.images.subspan(i * size, size)) != checksums_[given.samples[i]]) damaged("the loader");
    return given.count;
}

double loader_set::deliver(loader& from, std::uint64_t epoch) {
    loading_watch watch;
    std::size_t delivered = 0;
    watch.start();
    auto range = from.epoch(epoch);
    auto next = range.begin();
    while (next != range.end()) {
        watch.stop();
        delivered += check(*next);
        watch.start();
        ++next;
    }
    watch.stop();
    if (delivered != data_.size()) damaged("the loader");
    return watch.seconds();
}

double loader_set::deliver_ahead(loader& from, std::uint64_t epoch) {
    loading_watch watch;
    std::size_t timed = 0;
    watch.start();
    for (batch const& given : from.epoch(epoch)) timed += given.count;
    watch.stop();
    std::size_t checked = 0;
    for (batch const& given : from.epoch(epoch)) checked += check(given);
    if (timed != data_.size() || checked != data_.size()) damaged("the loader");
    return watch.seconds();
}

double loader_set::copy_in_batches() {
    loading_watch watch;
    std::size_t const size = data_.image_bytes();
    for (std::size_t first = 0; first < data_.size(); first += batch_) {
        std::size_t const count = std::min(batch_, data_.size() - first);
        watch.start();
        std::memcpy(target_.bytes().data(), source_.bytes().data() + first * size, count * size);
        watch.stop();
        for (std::size_t i = 0; i < count; ++i)
            if (xxh3_64(target_.bytes().subspan(i * size, size)) != checksums_[first + i]) damaged("memcpy");
    }
    return watch.seconds();
}

double loader_set::copy_at_once() {
    loading_watch watch;
    watch.start();
    std::memcpy(target_.bytes().data(), source_.bytes().data(), bytes_);
    watch.stop();
    std::size_t const size = data_.image_bytes();
    for (std::size_t i = 0; i < data_.size(); ++i)
        if (xxh3_64(target_.bytes().subspan(i * size, size)) != checksums_[i]) damaged("memcpy");
    return watch.seconds();
}

void loader_set::measure(int repetitions) {
    for (delivery_row& row : rows_) row.run(0);  // touches every page
    for (int repetition = 0; repetition < repetitions; ++repetition)
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            delivery_row& row = rows_[(i + static_cast<std::size_t>(repetition)) % rows_.size()];
            row.gbps.push_back(static_cast<double>(bytes_) / 1e9 / row.run(static_cast<std::uint64_t>(repetition) + 1));
        }
}

std::string make_synthetic(std::string const& folder, std::uint64_t bytes) {
    image_shape const shape{1, 56, 56};
    std::size_t const samples = std::max<std::size_t>(1, static_cast<std::size_t>(bytes / shape.elements()));
    std::string const path = folder + "/synthetic.h5";
    split_plan plan;
    plan.split = "train";
    plan.samples = samples;
    plan.shape = shape;
    plan.classes = 1;
    dataset_writer writer(path, {plan}, {.name = "synthetic"});
    std::vector<std::uint8_t> images;
    std::vector<std::uint8_t> labels;
    for (std::size_t first = 0; first < samples; first += writer.block_samples()) {
        hyperslab const rows{first, std::min(writer.block_samples(), samples - first)};
        images.resize(rows.count * shape.elements());
        labels.assign(rows.count, 0);
        for (std::size_t i = 0; i + 8 <= images.size(); i += 8) {
            std::uint64_t const word = permutation::mix(first * shape.elements() + i);
            std::memcpy(images.data() + i, &word, sizeof word);
        }
        writer.write(0, rows, images, labels);
    }
    writer.close();
    return path;
}

std::string make_real(std::string const& folder, std::string const& images, std::string const& labels) {
    convert_request conversion;
    conversion.splits = {{"train", images, labels}};
    conversion.output = folder + "/real.h5";
    convert(conversion);
    return conversion.output;
}

}  // namespace muster
