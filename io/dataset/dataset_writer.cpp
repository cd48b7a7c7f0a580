#include "io/dataset/dataset_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/unique_fd.hpp"
#include "base/version.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/dataset/format.hpp"

namespace muster {

namespace {

enum array : std::size_t { images, labels, image_blocks, label_blocks };
constexpr char const* array_names[] = {format::images, format::labels, format::image_blocks, format::label_blocks};

void make_durable(std::string const& path) {
    unique_fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) throw_system("fsync", path);
}

void check(split_plan const& plan) {
    bool const good = !plan.split.empty() && std::all_of(plan.split.begin(), plan.split.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    });
    if (!good || plan.split == "." || plan.split == "..")
        throw error(errc::usage, fmt::format("split '{}': not a name; use letters, digits, '-', '_' and '.' only", plan.split));
    if (plan.samples == 0 || plan.shape.bytes() == 0)
        throw error(errc::usage, fmt::format("split {}: {} images of {}: nothing to write; give at least one image", plan.split,
                                             plan.samples, to_string(plan.shape)));
}

}  // namespace

dataset_writer::dataset_writer(std::string path, writer_options options)
    : dataset_writer(std::move(path), std::move(options), alone()) {}

dataset_writer::dataset_writer(std::string path, writer_options options, communicator& ranks)
    : dataset_writer(std::move(path), std::move(options), std::shared_ptr<communicator>(std::shared_ptr<void>(), &ranks)) {}

dataset_writer::dataset_writer(std::string path, writer_options options, std::shared_ptr<communicator> ranks)
    : path_(std::move(path)), partial_(path_ + ".partial"), options_(std::move(options)), ranks_(std::move(ranks)) {
    run_step(*ranks_, "creating a dataset file", [&] {
        if (ranks_->rank() != 0) return;
        if (!options_.replace && ::access(path_.c_str(), F_OK) == 0)
            throw error(errc::usage, fmt::format("{}: exists; remove it, choose another name, or give --force", path_));
        if (::unlink(partial_.c_str()) != 0 && errno != ENOENT) throw_system("unlink", partial_);
        // HDF5 would report a missing folder only deep in its error stack.
        unique_fd const probe(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (!probe) throw_system("create", partial_, 0, "check that its folder exists and is writable");
        ::unlink(partial_.c_str());
    });
    hdf5::place const where{partial_, ""};
    run_step(*ranks_, "creating a dataset file", [&] {
        file_ = hdf5::create_file(where, hdf5::file_access(where, options_.alignment_bytes, mpi_handle(*ranks_)));
        created_ = true;
        hdf5::place const root{partial_, "/"};
        hdf5::write_attribute(root, file_.get(), format::format_attribute, std::string(format::name));
        hdf5::write_attribute(root, file_.get(), format::version_attribute, format::version);
        hdf5::write_attribute(root, file_.get(), format::name_attribute, options_.name);
        hdf5::write_attribute(root, file_.get(), format::created_by_attribute, "muster " + std::string(version()));
    });
}

dataset_writer::~dataset_writer() {
    for (hdf5::dataset& handle : arrays_) handle.reset();
    group_.reset();
    file_.reset();
    if (created_ && ranks_->rank() == 0) ::unlink(partial_.c_str());
}

hdf5::place dataset_writer::at(char const* array) const {
    return {partial_, "/" + plan_.split + "/" + array};
}

void dataset_writer::begin(split_plan plan) {
    run_step(*ranks_, "planning a split", [&] { check(plan); });
    plan_ = std::move(plan);
    block_ = format::block_samples(plan_.shape);
    std::size_t const blocks = format::block_count(plan_.samples, block_);
    run_step(*ranks_, "creating a split", [&] {
        for (auto& checksums : checksums_) checksums.assign(blocks, 0);
        hdf5::place const root{partial_, "/"};
        hdf5::place const where{partial_, "/" + plan_.split};
        std::uint64_t const extent[4] = {plan_.samples, plan_.shape.channels, plan_.shape.height, plan_.shape.width};
        std::uint64_t const chunk[4] = {std::min(plan_.chunk_samples, plan_.samples), extent[1], extent[2], extent[3]};
        std::span<std::uint64_t const> const image_chunk(chunk, chunk[0] == 0 ? 0 : 4);
        std::uint64_t const block_extent = blocks;
        group_ = hdf5::create_group(root, file_, plan_.split);
        arrays_[images] = hdf5::create_dataset(where, group_, format::images, hdf5::element::u8, extent, image_chunk);
        arrays_[labels] = hdf5::create_dataset(where, group_, format::labels, hdf5::element::u8, {extent, 1}, {});
        for (array const which : {image_blocks, label_blocks})
            arrays_[which] = hdf5::create_dataset(where, group_, array_names[which], hdf5::element::u64, {&block_extent, 1}, {});
    });
}

hyperslab dataset_writer::share() const {
    return shard_of_blocks(plan_.samples, block_, ranks_->rank(), ranks_->size());
}

void dataset_writer::write_array(char const* array, hdf5::dataset const& to, hyperslab rows, hdf5::element type, void const* data,
                                 bool must_be_collective) {
    bool const parallel = mpi_handle(*ranks_) != nullptr;
    run_step(*ranks_, "writing samples", [&] {
        hdf5::property_list const list = hdf5::transfer(at(array), parallel);
        hdf5::write(at(array), to, rows, type, data, list);
        if (parallel && must_be_collective) hdf5::require_collective(at(array), list);
    });
}

void dataset_writer::write(hyperslab rows, std::span<std::uint8_t const> image_data, std::span<std::uint8_t const> label_data) {
    if (rows.empty()) rows = {0, 0};
    std::size_t const image_bytes = plan_.shape.bytes();
    run_step(*ranks_, "writing samples", [&] {
        hyperslab const mine = share();
        bool const inside = rows.empty() || (rows.first >= mine.first && rows.end() <= mine.end());
        expect(inside && rows.first % block_ == 0 && (rows.count % block_ == 0 || rows.end() == plan_.samples),
               "whole blocks of the share");
        expect(image_data.size() == rows.count * image_bytes && label_data.size() == rows.count,
               "as many bytes as the rows have");
        std::size_t const blocks = format::block_count(rows.count, block_);
        block_checksums(image_data, block_ * image_bytes, std::span(checksums_[images]).subspan(rows.first / block_, blocks));
        block_checksums(label_data, block_, std::span(checksums_[labels]).subspan(rows.first / block_, blocks));
    });
    write_array(format::images, arrays_[images], rows, hdf5::element::u8, image_data.data(), true);
    write_array(format::labels, arrays_[labels], rows, hdf5::element::u8, label_data.data(), true);
}

void dataset_writer::end(split_facts const& facts) {
    bool const first = ranks_->rank() == 0;
    for (std::size_t i = 0; i < 2; ++i) {
        // Blocks of other ranks are 0 here. The same bits: a signed and an unsigned type of one size may alias, and both wrap.
        std::span const bits(reinterpret_cast<std::int64_t*>(checksums_[i].data()), checksums_[i].size());
        ranks_->allreduce("checksums", view_of(bits), reduction::sum).wait();
        array const to = i == 0 ? image_blocks : label_blocks;
        hyperslab const rows{0, first ? checksums_[i].size() : 0};
        write_array(array_names[to], arrays_[to], rows, hdf5::element::u64, checksums_[i].data(), true);
    }
    run_step(*ranks_, "writing attributes", [&] {
        hdf5::place const where{partial_, "/" + plan_.split};
        hdf5::id const group = group_.get();
        hdf5::write_attribute(where, group, format::split_attribute, plan_.split);
        hdf5::write_attribute(where, group, format::classes_attribute, facts.classes);
        if (!facts.class_names.empty()) hdf5::write_attribute(where, group, format::class_names_attribute, facts.class_names);
        hdf5::write_attribute(where, group, format::source_images_attribute, facts.source_images);
        hdf5::write_attribute(where, group, format::source_labels_attribute, facts.source_labels);
        hdf5::write_attribute(where, group, format::algorithm_attribute, std::string(format::checksum_algorithm));
        hdf5::write_attribute(where, group, format::block_attribute, block_);
        hdf5::write_attribute(where, group, format::image_checksum_attribute, fold_checksums(checksums_[images]));
        hdf5::write_attribute(where, group, format::label_checksum_attribute, fold_checksums(checksums_[labels]));
        for (std::size_t i = 0; i < 4; ++i) hdf5::close(at(array_names[i]), std::move(arrays_[i]));
        group_.reset();
    });
}

void dataset_writer::close() {
    run_step(*ranks_, "closing a dataset file", [&] { hdf5::close({partial_, ""}, std::move(file_)); });
    run_step(*ranks_, "naming a dataset file", [&] {
        if (ranks_->rank() != 0) return;
        make_durable(partial_);
        if (std::rename(partial_.c_str(), path_.c_str()) != 0) throw_system("rename", fmt::format("{} to {}", partial_, path_));
    });
    created_ = false;
}

}  // namespace muster
