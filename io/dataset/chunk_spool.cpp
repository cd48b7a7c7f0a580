#include "io/dataset/chunk_spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/trust/open_output_file.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/dataset/format.hpp"
#include "io/hdf5/hdf5.hpp"

namespace muster {

void chunk_spool::create(std::string const& path) {
    static_cast<void>(open_output_file(path, "check that its folder exists and is writable", if_there::kept));
}

chunk_spool::chunk_spool(std::string path, std::vector<split_plan> const& plans)
    : path_(std::move(path)),
      plans_(plans),
      file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)),
      file_for_writing_(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW)) {
    if (!file_ || !file_for_writing_) throw_system("open", path_, 0, "give an output on a file system that all ranks share");
    std::uint64_t next = 0;
    for (split_plan const& plan : plans_) {
        slots one;
        one.first = next;
        one.chunk_bytes = plan.block_samples() * plan.image_bytes();
        one.encoded_bytes = ::compressBound(one.chunk_bytes);
        std::size_t const page = 4096;
        one.slot_bytes = (one.encoded_bytes + plan.block_samples() * plan.label_bytes() + page - 1) / page * page;
        next += format::block_count(plan.samples, plan.block_samples()) * one.slot_bytes;
        slots_.push_back(one);
    }
}

std::uint64_t chunk_spool::write(std::size_t split, std::size_t block, std::span<std::uint8_t const> images,
                                 std::span<std::uint8_t const> labels) {
    slots const& place = slots_.at(split);
    std::vector<std::uint8_t> chunk(images.begin(), images.end());
    chunk.resize(std::max(place.chunk_bytes, chunk.size()));
    std::vector<std::uint8_t> encoded(place.encoded_bytes);
    auto size = static_cast<uLongf>(encoded.size());
    int const level = plans_[split].gzip_level == 0 ? Z_BEST_SPEED : static_cast<int>(plans_[split].gzip_level);
    if (int const code = ::compress2(encoded.data(), &size, chunk.data(), chunk.size(), level); code != Z_OK)
        throw library_error("zlib", "compress2", code, fmt::format("block {} of {} bytes", block, chunk.size()));
    write_fully(file_for_writing_.get(), path_, offset_of(split, block), std::span(encoded).first(size));
    write_fully(file_for_writing_.get(), path_, offset_of(split, block) + place.encoded_bytes, labels);
    return size;
}

bool chunk_spool::read(std::size_t split, std::size_t block, std::uint64_t encoded_bytes, std::span<std::uint8_t> images,
                       std::span<std::uint8_t> labels) const {
    slots const& place = slots_.at(split);
    if (encoded_bytes == 0 || encoded_bytes > place.encoded_bytes) return false;
    std::vector<std::uint8_t> encoded(encoded_bytes);
    if (read_fully(file_.get(), path_, offset_of(split, block), encoded) < encoded.size()) return false;
    if (read_fully(file_.get(), path_, offset_of(split, block) + place.encoded_bytes, labels) < labels.size()) return false;
    std::vector<std::uint8_t> chunk(place.chunk_bytes);
    auto size = static_cast<uLongf>(chunk.size());
    if (::uncompress(chunk.data(), &size, encoded.data(), encoded.size()) != Z_OK || size != chunk.size()) return false;
    std::copy_n(chunk.begin(), images.size(), images.begin());
    return true;
}

void chunk_spool::unload(std::string const& dataset_file, std::vector<std::vector<std::uint64_t>> const& encoded_bytes) const {
    hdf5::place const whole{dataset_file, ""};
    hdf5::place const root{dataset_file, "/"};
    hdf5::file file = hdf5::open_file(whole, hdf5::file_access(whole, 1, nullptr), true);
    for (std::size_t split = 0; split < plans_.size(); ++split) {
        split_plan const& plan = plans_[split];
        hdf5::place const where{dataset_file, "/" + plan.split};
        hdf5::place const at_images{dataset_file, where.object + "/images"};
        hdf5::place const at_labels{dataset_file, where.object + "/labels"};
        hdf5::group const group = hdf5::open_group(root, file, plan.split);
        hdf5::dataset images = hdf5::open_dataset(where, group, format::images);
        hdf5::dataset labels;
        auto const label_type = plan.label_type();
        if (label_type) labels = hdf5::open_dataset(where, group, format::labels);
        for (std::size_t block = 0; block < encoded_bytes.at(split).size(); ++block) {
            hyperslab const rows = intersect({block * plan.block_samples(), plan.block_samples()}, {0, plan.samples});
            std::vector<std::uint8_t> encoded(encoded_bytes[split][block]);
            read_exactly(file_.get(), path_, offset_of(split, block), encoded);
            hdf5::write_chunk(at_images, images, rows.first, encoded);
            if (!label_type) continue;
            std::vector<std::uint8_t> part(rows.count * plan.label_bytes());
            read_exactly(file_.get(), path_, offset_of(split, block) + slots_[split].encoded_bytes, part);
            hdf5::write(at_labels, labels, rows, *label_type, part.data(), hdf5::transfer(at_labels, false));
        }
        hdf5::close(at_images, std::move(images));
        if (label_type) hdf5::close(at_labels, std::move(labels));
    }
    hdf5::close(whole, std::move(file));
}

}  // namespace muster
