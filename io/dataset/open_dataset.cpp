#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "io/dataset/dataset.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/dataset/format.hpp"

namespace muster {

namespace {

[[noreturn]] void invalid(std::string const& path, std::string_view object, std::string_view what) {
    throw error(errc::invalid_data, fmt::format("{}: {}: {}; convert it again with `muster-stage convert`", path, object, what));
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
        throw error(errc::invalid_data,
                    fmt::format("{}: attribute format is '{}', expected '{}': an HDF5 file, but no muster dataset; make one with "
                                "`muster-stage convert`",
                                root.file, found, format::name));
    std::uint64_t const version = number(root, file.get(), format::version_attribute);
    if (version < 1 || version > format::newest_version)
        throw error(errc::invalid_data,
                    fmt::format("{}: format_version is {}, this muster reads 1 to {}; convert it again, or use the muster "
                                "that wrote it",
                                root.file, version, format::newest_version));
}

hdf5::group find_split(hdf5::place const& root, hdf5::file const& file, std::string const& split) {
    std::vector<std::string> const names = hdf5::group_names(root, file);
    for (std::string const& name : names)
        if (name == split) return hdf5::open_group(root, file, split);
    auto const near = nearest(split, names);
    throw error(errc::not_found,
                fmt::format("{}: has no split '{}'; it has {}{}", root.file, split, names.empty() ? "none" : join(names, ", "),
                            near ? fmt::format("; did you mean {}?", *near) : std::string()));
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
    if (auto names = hdf5::read_strings(where, group.get(), format::class_names_attribute)) info_.class_names = std::move(*names);
    if (!info_.class_names.empty() && info_.class_names.size() != info_.classes)
        invalid(info_.path, where.object,
                fmt::format("has {} class_names for {} classes", info_.class_names.size(), info_.classes));
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
        invalid(info_.path, at.object,
                fmt::format("does not hold {}, the type of labels of {} classes", to_string(*info_.label_type), info_.classes));
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
    if (images.extent.size() != 4)
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
    info_.shape = {images.extent[1], images.extent[2], images.extent[3]};
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
