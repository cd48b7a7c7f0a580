#include "io/dataset/dataset.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"
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
            throw_error(errc::usage, "{}: read of samples {} to {}: /{} has {}; ask for fewer", info_.path, first, first + count,
                        info_.split, size());
        if ((!images.empty() && images.size() != count * image_bytes()) ||
            (!labels.empty() && labels.size() != count * label_bytes()))
            throw_error(errc::usage, "{}: read of {} samples into {} bytes for images and {} for labels; give {} and {}",
                        info_.path, count, images.size(), labels.size(), count * image_bytes(), count * label_bytes());
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
        return {};  // a file so damaged that it does not tell; the message does without
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
                throw_error(errc::invalid_data,
                            "{}: /{}/{}: {}: checksum {}, expected {}; the file is damaged: copy or convert it again", info_.path,
                            info_.split, what, place_of_block(first_block + i, of_images), format_checksum(found[i]),
                            format_checksum(expected[first_block + i]));
    };
    block_checksums(images, block * image_bytes(), found);
    compare(format::images, true, image_blocks);
    if (!info_.label_type) return;
    block_checksums(labels, block * label_bytes(), found);
    compare(format::labels, false, label_blocks);
    if (is_real(*info_.label_type)) return;
    for (std::size_t i = 0; i < rows.count; ++i)
        if (double const label = element_at(*info_.label_type, labels, i); label >= static_cast<double>(info_.classes))
            throw_error(errc::invalid_data, "{}: /{}/labels: sample {}: label {}, expected below {} (classes); convert it again",
                        info_.path, info_.split, rows.first + i, label, info_.classes);
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
                throw_error(errc::invalid_data, "{}: {}: {}; convert it again", info_.path, at.object, why);
            if (form.extent.size() != 1 || form.extent[0] != blocks || hdf5::element_of(at, handle) != element_type::u64)
                throw_error(errc::invalid_data, "{}: {}: expected {} checksums of 8 bytes; convert it again", info_.path,
                            at.object, blocks);
            expected[i].resize(blocks);
            hdf5::read(at, handle, {0, blocks}, element_type::u64, expected[i].data(),
                       hdf5::transfer(at, mpi_handle(*ranks_) != nullptr));
            if (std::uint64_t const found = fold_checksums(expected[i]); found != whole[i])
                throw_error(errc::invalid_data,
                            "{}: {}: checksum {}, expected {} (attribute of {}); the file is damaged: copy or convert it again",
                            info_.path, at.object, format_checksum(found), format_checksum(whole[i]), where.object);
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

namespace {

[[noreturn]] void invalid(std::string const& path, std::string_view object, std::string_view what) {
    throw_error(errc::invalid_data, "{}: {}: {}; convert it again with `muster-stage convert`", path, object, what);
}

// HDF5 reports a missing file only deep in its error stack.
void require_readable(std::string const& path) {
    unique_fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throw_system("open", path, 0, errno == ENOENT ? "make it with `muster-stage convert`" : "check its permissions");
}

std::string text(hdf5::place const& where, hdf5::id object, char const* name, bool needed) {
    auto const values = hdf5::read_strings(where, object, name);
    if (!values && needed) invalid(where.file, where.object, fmt::format("has no attribute {}", name));
    return values && !values->empty() ? values->front() : std::string();
}

std::uint64_t number(hdf5::place const& where, hdf5::id object, char const* name) {
    auto const value = hdf5::read_number(where, object, name);
    if (!value) invalid(where.file, where.object, fmt::format("has no attribute {}", name));
    return *value;
}

void require_format(hdf5::place const& root, hdf5::file const& file) {
    std::string const found = text(root, file.get(), format::format_attribute, false);
    if (found != format::name)
        throw_error(errc::invalid_data,
                    "{}: attribute format is '{}', expected '{}': an HDF5 file, but no muster dataset; make one with "
                    "`muster-stage convert`",
                    root.file, found, format::name);
    std::uint64_t const version = number(root, file.get(), format::version_attribute);
    if (version < 1 || version > format::newest_version)
        throw_error(errc::invalid_data,
                    "{}: format_version is {}, this muster reads 1 to {}; convert it again, or use the muster that wrote it",
                    root.file, version, format::newest_version);
}

hdf5::group find_split(hdf5::place const& root, hdf5::file const& file, std::string const& split) {
    if (hdf5::has_group(root, file, split)) return hdf5::open_group(root, file, split);
    std::vector<std::string> const names = hdf5::group_names(root, file);
    auto const near = nearest(split, names);
    throw_error(errc::not_found, "{}: has no split '{}'; it has {}{}", root.file, split,
                names.empty() ? "none" : join(names, ", "), near ? fmt::format("; did you mean {}?", *near) : std::string());
}

}  // namespace

dataset dataset::open(std::string const& path, std::string const& split) {
    return open_with(path, alone(), split);
}

dataset dataset::open(std::string const& path, communicator& comm, std::string const& split) {
    return open_with(path, {std::shared_ptr<void>(), &comm}, split);
}

dataset dataset::open_with(std::string const& path, std::shared_ptr<communicator> with, std::string const& split) {
    dataset opened;
    opened.ranks_ = std::move(with);
    communicator& ranks = *opened.ranks_;
    opened.info_.path = path;
    hdf5::place const root{path, "/"};
    run_step(ranks, "opening a dataset", [&] { require_readable(path); });
    run_step(ranks, "opening a dataset", [&] {
        hdf5::place const file{path, ""};
        opened.file_ = hdf5::open_file(file, hdf5::file_access(file, 1, mpi_handle(ranks)));
    });
    run_step(ranks, "opening a dataset", [&] {
        require_format(root, opened.file_);
        opened.group_ = find_split(root, opened.file_, split);
        opened.read_info(opened.file_, opened.group_);
        opened.check_forms(opened.group_);
    });
    return opened;
}

std::vector<std::string> dataset::splits(std::string const& path) {
    require_readable(path);
    hdf5::place const where{path, ""};
    hdf5::place const root{path, "/"};
    hdf5::file const file = hdf5::open_file(where, hdf5::file_access(where, 1, nullptr));
    require_format(root, file);
    std::vector<std::string> names = hdf5::group_names(root, file);
    if (names.empty()) invalid(path, "/", "has no split");
    return names;
}

std::vector<std::string> dataset::splits(std::string const& path, communicator& comm) {
    std::vector<std::string> names;
    run_step(comm, "opening a dataset", [&] { names = splits(path); });
    return names;
}

void dataset::read_info(hdf5::file const& file, hdf5::group const& group) {
    hdf5::place const root{info_.path, "/"};
    info_.format_version = number(root, file.get(), format::version_attribute);
    info_.name = text(root, file.get(), format::name_attribute, false);
    info_.created_by = text(root, file.get(), format::created_by_attribute, false);
    info_.command = text(root, file.get(), format::command_attribute, false);

    info_.split = text(root, group.get(), format::split_attribute, true);
    hdf5::place const where{info_.path, "/" + info_.split};
    if (std::string const algorithm = text(where, group.get(), format::algorithm_attribute, true);
        algorithm != format::checksum_algorithm)
        invalid(info_.path, where.object,
                fmt::format("checksum_algorithm is '{}', expected '{}'", algorithm, format::checksum_algorithm));
    info_.classes = number(where, group.get(), format::classes_attribute);
    std::size_t const fewest = info_.format_version == 1 ? 1 : 0;
    std::size_t const most = info_.format_version == 1 ? 256 : std::size_t{1} << 32;
    if (info_.classes < fewest || info_.classes > most)
        invalid(info_.path, where.object, fmt::format("classes is {}, expected {} to {}", info_.classes, fewest, most));
    info_.label_type = format::label_type(info_.classes);
    if (std::string const named = text(where, group.get(), format::label_type_attribute, false); !named.empty()) {
        if (named != to_string(element_type::f32) || info_.classes != 0)
            invalid(info_.path, where.object,
                    fmt::format("label_type is '{}' with {} classes, expected float32 and 0", named, info_.classes));
        info_.label_type = element_type::f32;
    }
    if (auto names = hdf5::read_strings(where, group.get(), format::class_names_attribute)) info_.class_names = std::move(*names);
    if (!info_.class_names.empty() && info_.class_names.size() != info_.classes)
        invalid(info_.path, where.object,
                fmt::format("has {} class_names for {} classes", info_.class_names.size(), info_.classes));
    if (auto names = hdf5::read_strings(where, group.get(), format::columns_attribute)) info_.columns = std::move(*names);
    info_.source_images = text(where, group.get(), format::source_images_attribute, false);
    info_.source_labels = text(where, group.get(), format::source_labels_attribute, false);
    info_.checksum_block_samples = number(where, group.get(), format::block_attribute);
    info_.checksum_images = number(where, group.get(), format::image_checksum_attribute);
    if (info_.label_type) info_.checksum_labels = number(where, group.get(), format::label_checksum_attribute);
    if (auto lines = hdf5::read_strings(where, group.get(), format::sources_attribute)) info_.sources = std::move(*lines);
    auto const least = hdf5::read_real(where, group.get(), format::least_attribute);
    auto const largest = hdf5::read_real(where, group.get(), format::most_attribute);
    if (least && largest) info_.values = {*least, *largest, true};
}

void dataset::check_labels(hdf5::group const& group) {
    hdf5::place const where{info_.path, "/" + info_.split};
    hdf5::place const at{info_.path, where.object + "/labels"};
    labels_ = hdf5::open_dataset(where, group, format::labels);
    hdf5::dataset_form const form = hdf5::form_of(at, labels_);
    if (auto const why = hdf5::why_not_read(form); !why.empty()) invalid(info_.path, at.object, why);
    if (form.extent.size() != 1)
        invalid(info_.path, at.object, fmt::format("has {} dimensions, expected 1 (N)", form.extent.size()));
    if (hdf5::element_of(at, labels_) != info_.label_type)
        invalid(
            info_.path, at.object,
            fmt::format("does not hold {}, the type of its labels ({} classes)", to_string(*info_.label_type), info_.classes));
    if (form.extent[0] != info_.samples)
        invalid(info_.path, where.object, fmt::format("has {} images and {} labels", info_.samples, form.extent[0]));
    if (!form.filtered && !form.big_endian && form.stored_bytes == info_.samples * info_.label_bytes())
        info_.label_offset = form.offset;
}

void dataset::check_forms(hdf5::group const& group) {
    hdf5::place const where{info_.path, "/" + info_.split};
    hdf5::place const at{info_.path, where.object + "/images"};
    images_ = hdf5::open_dataset(where, group, format::images);
    hdf5::dataset_form const images = hdf5::form_of(at, images_);
    if (auto const why = hdf5::why_not_read(images); !why.empty()) invalid(info_.path, at.object, why);
    bool const is_row = info_.format_version > 2 && images.extent.size() == 2;
    if (images.extent.size() != 4 && !is_row)
        invalid(info_.path, at.object, fmt::format("has {} dimensions, expected 4 (N x C x H x W)", images.extent.size()));
    auto const type = hdf5::element_of(at, images_);
    if (!type || (info_.format_version == 1 && *type != element_type::u8))
        invalid(
            info_.path, at.object,
            info_.format_version == 1 ? "does not hold unsigned bytes, as version 1 does" : "holds no numbers of a known type");
    info_.type = *type;
    std::uint64_t bytes = bytes_of(*type);
    for (std::uint64_t const size : images.extent)
        if (size == 0 || __builtin_mul_overflow(bytes, size, &bytes)) invalid(info_.path, at.object, "has an impossible shape");
    info_.samples = images.extent[0];
    if (!is_row || info_.columns.size() != images.extent[1]) info_.columns.clear();  // another writer's attribute of that name
    info_.shape = is_row ? image_shape{1, 1, images.extent[1], true}
                         : image_shape{images.extent[1], images.extent[2], images.extent[3], false};
    info_.chunk_samples = images.chunk.empty() ? 0 : images.chunk[0];
    info_.compressed = images.filtered;
    if (!images.filtered && !images.big_endian && images.stored_bytes == bytes) info_.image_offset = images.offset;
    bool const whole_chunks =
        !images.chunk.empty() && std::equal(images.chunk.begin() + 1, images.chunk.end(), images.extent.begin() + 1);
    info_.read_by_chunks = info_.image_offset || (whole_chunks && !images.big_endian && (!images.filtered || images.deflated));
    std::size_t const largest_block = format::block_samples(info_.image_bytes());
    if (info_.checksum_block_samples == 0 || info_.checksum_block_samples > largest_block)
        invalid(info_.path, where.object,
                fmt::format("checksum_block_samples is {}, expected 1 to {}", info_.checksum_block_samples, largest_block));
    // Memory is allocated by what the shape promises only if the file really holds it (deflate makes at most 1032 bytes of one).
    if (images.stored_bytes < bytes / (images.filtered ? 1032 : 1))
        invalid(info_.path, at.object, fmt::format("stores {} bytes of {}", images.stored_bytes, bytes));
    if (info_.label_type) check_labels(group);
}

}  // namespace muster
