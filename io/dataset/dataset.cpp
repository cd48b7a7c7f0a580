#include "io/dataset/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/dataset/checksum.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/dataset/format.hpp"

namespace muster {

namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20;
// MPI-IO counts with int, and HDF5 1.10 hands one transfer on as one call.
constexpr std::size_t transfer_bytes = std::size_t{512} << 20;

}  // namespace

void dataset::transfer(hdf5::place const& where, hdf5::dataset const& from, element_type type, hyperslab rows,
                       std::size_t row_bytes, std::uint8_t* data) const {
    bool const parallel = mpi_handle(*ranks_) != nullptr;
    hdf5::property_list const list = hdf5::transfer(where, parallel);
    std::size_t const step = std::max<std::size_t>(1, transfer_bytes / row_bytes);
    auto rounds = static_cast<std::int64_t>(rows.count / step + (rows.count % step != 0 ? 1 : 0));
    ranks_->allreduce("rounds of reading", view_of(std::span(&rounds, 1)), reduction::max).wait();
    rounds = std::max<std::int64_t>(rounds, 1);
    for (std::int64_t round = 0; round < rounds; ++round) {
        hyperslab const part = intersect(rows, {rows.first + static_cast<std::size_t>(round) * step, step});
        run_step(*ranks_, "reading a dataset", [&] {
            hdf5::read(where, from, part.empty() ? hyperslab{0, 0} : part, type,
                       part.empty() ? nullptr : data + (part.first - rows.first) * row_bytes, list);
            if (parallel) hdf5::require_collective(where, list);
        });
    }
}

void dataset::read(std::size_t first, std::size_t count, std::span<std::uint8_t> images, std::span<std::uint8_t> labels) const {
    std::int64_t wanted[2] = {images.empty() ? 0 : 1, labels.empty() ? 0 : 1};
    run_step(*ranks_, "reading a dataset", [&] {
        if (first > size() || count > size() - first)
            throw error(errc::usage, fmt::format("{}: read of samples {} to {}: /{} has {}; ask for fewer", info_.path, first,
                                                 first + count, info_.split, size()));
        if ((!images.empty() && images.size() != count * image_bytes()) ||
            (!labels.empty() && labels.size() != count * label_bytes()))
            throw error(
                errc::usage,
                fmt::format("{}: read of {} samples into {} bytes for images and {} for labels; give {} and {}", info_.path,
                            count, images.size(), labels.size(), count * image_bytes(), count * label_bytes()));
    });
    ranks_->allreduce("arrays to read", view_of(std::span(wanted)), reduction::max).wait();
    hyperslab const rows{first, count};
    std::string const group = "/" + info_.split;
    if (wanted[0] != 0)
        transfer({info_.path, group + "/images"}, images_, info_.type, images.empty() ? hyperslab{} : rows, image_bytes(),
                 images.data());
    if (wanted[1] != 0)
        transfer({info_.path, group + "/labels"}, labels_, *info_.label_type, labels.empty() ? hyperslab{} : rows, label_bytes(),
                 labels.data());
}

std::vector<hdf5::stored_chunk> dataset::stored_chunks() const {
    return hdf5::stored_chunks({info_.path, fmt::format("/{}/images", info_.split)}, images_);
}

/// "samples 300 to 399 (block 3, bytes 4096 to 8191 of the file)"; where the samples lie in chunks, "samples 300 to 399 (block 3, in
/// chunks 6 to 7, at bytes 4096 to 8192 of the file)", which are the first bytes of the first and of the last of them. Chunks are asked
/// for where this process has the file for itself alone: the others do not take part.
std::string dataset::place_of_block(std::size_t block, bool of_images) const {
    std::size_t const from = block * info_.checksum_block_samples;
    std::size_t const end = std::min(from + info_.checksum_block_samples, size());
    auto const offset = of_images ? info_.image_offset : info_.label_offset;
    std::size_t const row = of_images ? image_bytes() : label_bytes();
    std::string const bytes = offset ? fmt::format(", bytes {} to {} of the file", *offset + from * row, *offset + end * row - 1)
                                     : place_of_chunks({from, end - from}, of_images);
    return fmt::format("samples {} to {} (block {}{})", from, end - 1, block, bytes);
}

std::string dataset::place_of_chunks(hyperslab rows, bool of_images) const {
    if (ranks_->size() > 1) return {};
    hdf5::place const where{info_.path, fmt::format("/{}/{}", info_.split, of_images ? "images" : "labels")};
    hdf5::dataset const& array = of_images ? images_ : labels_;
    try {
        auto const chunk = hdf5::form_of(where, array).chunk;
        if (chunk.empty()) return {};
        auto const chunks = hdf5::stored_chunks(where, array);
        std::size_t const first = rows.first / chunk[0], last = (rows.end() - 1) / chunk[0];
        return fmt::format(", in chunks {} to {}, at bytes {} to {} of the file", first, last, chunks.at(first).offset,
                           chunks.at(last).offset);
    } catch (std::exception const&) {
        return {};  // a file so damaged that it does not tell; what is wrong is told without
    }
}

void dataset::verify_blocks(hyperslab rows, std::span<std::uint8_t const> images, std::span<std::uint8_t const> labels,
                            std::span<std::uint64_t const> image_blocks, std::span<std::uint64_t const> label_blocks) const {
    std::size_t const block = info_.checksum_block_samples;
    std::size_t const first_block = rows.first / block;
    std::size_t const blocks = format::block_count(rows.count, block);
    std::vector<std::uint64_t> found(blocks);
    auto const compare = [&](std::string_view what, bool of_images, std::span<std::uint64_t const> expected) {
        for (std::size_t i = 0; i < blocks; ++i)
            if (found[i] != expected[first_block + i])
                throw error(errc::invalid_data,
                            fmt::format("{}: /{}/{}: {}: checksum {}, expected {}; the file is damaged: copy or convert it again",
                                        info_.path, info_.split, what, place_of_block(first_block + i, of_images),
                                        format_checksum(found[i]), format_checksum(expected[first_block + i])));
    };
    block_checksums(images, block * image_bytes(), found);
    compare(format::images, true, image_blocks);
    if (!info_.label_type) return;
    block_checksums(labels, block * label_bytes(), found);
    compare(format::labels, false, label_blocks);
    for (std::size_t i = 0; i < rows.count; ++i)
        if (double const label = element_at(*info_.label_type, labels, i); label >= static_cast<double>(info_.classes))
            throw error(errc::invalid_data,
                        fmt::format("{}: /{}/labels: sample {}: label {}, expected below {} (classes); convert it again",
                                    info_.path, info_.split, rows.first + i, label, info_.classes));
}

void dataset::verify(std::function<void(std::uint64_t)> const& progress) const {
    hdf5::place const where{info_.path, "/" + info_.split};
    std::size_t const block = info_.checksum_block_samples;
    std::size_t const blocks = format::block_count(size(), block);
    std::vector<std::uint64_t> expected[2];
    std::vector<std::uint8_t> images;
    std::vector<std::uint8_t> labels;
    std::size_t const step = block * std::max<std::size_t>(1, piece_bytes / (block * image_bytes()));

    // Every rank reads all block checksums: they are few (8 bytes a MiB), and the whole checksum needs all of them.
    run_step(*ranks_, "reading checksums", [&] {
        char const* const names[2] = {format::image_blocks, format::label_blocks};
        std::uint64_t const whole[2] = {info_.checksum_images, info_.checksum_labels};
        for (int i = 0; i < (info_.label_type ? 2 : 1); ++i) {
            hdf5::place const at{info_.path, where.object + "/" + names[i]};
            hdf5::dataset const handle = hdf5::open_dataset(where, group_, names[i]);
            hdf5::dataset_form const form = hdf5::form_of(at, handle);
            if (auto const why = hdf5::why_not_read(form); !why.empty())
                throw error(errc::invalid_data, fmt::format("{}: {}: {}; convert it again", info_.path, at.object, why));
            if (form.extent.size() != 1 || form.extent[0] != blocks || hdf5::element_of(at, handle) != element_type::u64)
                throw error(errc::invalid_data, fmt::format("{}: {}: expected {} checksums of 8 bytes; convert it again",
                                                            info_.path, at.object, blocks));
            expected[i].resize(blocks);
            hdf5::read(at, handle, {0, blocks}, element_type::u64, expected[i].data(),
                       hdf5::transfer(at, mpi_handle(*ranks_) != nullptr));
            if (std::uint64_t const found = fold_checksums(expected[i]); found != whole[i])
                throw error(
                    errc::invalid_data,
                    fmt::format("{}: {}: checksum {}, expected {} (attribute of {}); the file is damaged: copy or convert it "
                                "again",
                                info_.path, at.object, format_checksum(found), format_checksum(whole[i]), where.object));
        }
        std::size_t const largest = std::min(step, size());
        images.resize(largest * image_bytes());
        labels.resize(largest * label_bytes());
    });

    hyperslab const mine = shard_of_blocks(size(), block, ranks_->rank(), ranks_->size());
    hyperslab const longest = shard_of_blocks(size(), block, 0, ranks_->size());
    std::uint64_t bytes = 0;
    for (std::size_t done = 0; done < longest.count; done += step) {
        hyperslab const rows = intersect(mine, {mine.first + done, step});
        std::span<std::uint8_t> const image_part(images.data(), rows.count * image_bytes());
        std::span<std::uint8_t> const label_part(labels.data(), rows.count * label_bytes());
        transfer({info_.path, where.object + "/images"}, images_, info_.type, rows, image_bytes(), images.data());
        if (info_.label_type)
            transfer({info_.path, where.object + "/labels"}, labels_, *info_.label_type, rows, label_bytes(), labels.data());
        run_step(*ranks_, "verifying a dataset", [&] { verify_blocks(rows, image_part, label_part, expected[0], expected[1]); });
        bytes += rows.count * (image_bytes() + label_bytes());
        if (progress) progress(bytes);
    }
}

}  // namespace muster
