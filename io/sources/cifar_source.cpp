#include "io/sources/file_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "io/arrays/byte_source.hpp"
#include "io/arrays/source_error.hpp"
#include "io/dataset/file_bytes.hpp"

namespace muster {

namespace {

constexpr std::size_t image_bytes = 3072;

std::vector<std::string> names_in(std::string const& path, std::size_t classes) {
    std::vector<std::string> names;
    std::ifstream file(path);
    for (std::string line; names.size() < classes && std::getline(file, line);)
        if (std::string_view const name = trim(line); !name.empty()) names.push_back(without_controls(name.substr(0, 256)));
    if (names.size() != classes) names.clear();  // another file of this name
    return names;
}

}  // namespace

cifar_source::cifar_source(std::vector<std::string> files, cifar_labels labels, std::string const& class_names) {
    record_bytes_ = image_bytes + (labels == cifar_labels::ten ? 1 : 2);
    label_offset_ = labels == cifar_labels::fine ? 1 : 0;
    facts_.shape = {3, 32, 32, false};
    facts_.classes = labels == cifar_labels::ten ? 10 : labels == cifar_labels::fine ? 100 : 20;
    for (std::string& path : files) {
        std::uint64_t bytes = 0;
        unique_fd fd = open_regular(path, bytes);
        if (bytes == 0 || bytes % record_bytes_ != 0)
            throw source_error(
                path, false,
                {bytes - bytes % record_bytes_, "size", fmt::format("{} bytes", bytes),
                 fmt::format("records of {} bytes ({})", record_bytes_, labels == cifar_labels::ten ? "CIFAR-10" : "CIFAR-100"),
                 "the file is truncated, or of the other CIFAR: copy or download it again"});
        std::size_t const count = static_cast<std::size_t>(bytes / record_bytes_);
        facts_.images += (facts_.images.empty() ? "" : ", ") + std::filesystem::path(path).filename().string();
        parts_.push_back({std::move(path), std::move(fd), {facts_.samples, count}});
        facts_.samples += count;
    }
    facts_.labels = facts_.images;
    if (!class_names.empty()) facts_.class_names = names_in(class_names, facts_.classes);
}

std::vector<std::string> cifar_source::files() const {
    std::vector<std::string> all;
    for (part const& each : parts_) all.push_back(each.path);
    return all;
}

cifar_source::part const& cifar_source::part_of(std::size_t row) const {
    return *std::find_if(parts_.begin(), parts_.end(), [&](part const& each) { return row < each.rows.end(); });
}

void cifar_source::read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) {
    for (part const& each : parts_) {
        hyperslab const here = intersect(rows, each.rows);
        if (here.empty()) continue;
        buffer_.resize(here.count * record_bytes_);
        read_exactly(each.fd.get(), each.path, (here.first - each.rows.first) * record_bytes_, buffer_);
        for (std::size_t i = 0; i < here.count; ++i) {
            std::uint8_t const* const record = buffer_.data() + i * record_bytes_;
            std::size_t const to = here.first - rows.first + i;
            labels[to] = record[label_offset_];
            std::copy_n(record + record_bytes_ - image_bytes, image_bytes, images.data() + to * image_bytes);
        }
    }
}

void cifar_source::fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const {
    part const& where = part_of(sample);
    throw source_error(
        where.path, false,
        {(sample - where.rows.first) * record_bytes_ + label_offset_, "label",
         fmt::format("{} for item {}", label, sample - where.rows.first), fmt::format("below {}, the number of classes", classes),
         "the file is damaged, or of the other CIFAR: copy or download it again"});
}

}  // namespace muster
