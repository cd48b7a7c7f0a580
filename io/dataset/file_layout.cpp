#include "io/dataset/file_layout.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "base/version.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/dataset/format.hpp"
#include "io/hdf5/hdf5.hpp"

namespace muster {

namespace {

hdf5::place split_place(std::string const& path, split_plan const& plan) {
    return {path, "/" + plan.split};
}

void write_root(hdf5::place const& root, hdf5::id file, std::vector<split_plan> const& plans, writer_options const& options) {
    std::uint64_t version = 1;
    for (split_plan const& plan : plans)
        version = std::max(version, format::version_for(plan.shape, plan.type, plan.label_type()));
    hdf5::write_attribute(root, file, format::format_attribute, std::string(format::name));
    hdf5::write_attribute(root, file, format::version_attribute, version);
    hdf5::write_attribute(root, file, format::name_attribute, options.name);
    hdf5::write_attribute(root, file, format::created_by_attribute, "muster " + std::string(muster::version()));
    if (!options.command.empty()) hdf5::write_attribute(root, file, format::command_attribute, options.command);
}

void write_facts(hdf5::place const& where, hdf5::id group, split_plan const& plan) {
    hdf5::write_attribute(where, group, format::split_attribute, plan.split);
    hdf5::write_attribute(where, group, format::classes_attribute, static_cast<std::uint64_t>(plan.classes));
    if (plan.targets)
        hdf5::write_attribute(where, group, format::label_type_attribute, std::string(to_string(element_type::f32)));
    if (!plan.class_names.empty()) hdf5::write_attribute(where, group, format::class_names_attribute, plan.class_names);
    if (!plan.columns.empty()) hdf5::write_attribute(where, group, format::columns_attribute, plan.columns);
    hdf5::write_attribute(where, group, format::source_images_attribute, plan.source_images);
    hdf5::write_attribute(where, group, format::source_labels_attribute, plan.source_labels);
    if (!plan.sources.empty()) hdf5::write_attribute(where, group, format::sources_attribute, plan.sources);
    hdf5::write_attribute(where, group, format::algorithm_attribute, std::string(format::checksum_algorithm));
    hdf5::write_attribute(where, group, format::block_attribute, static_cast<std::uint64_t>(plan.block_samples()));
}

std::vector<std::uint64_t> offsets_of(std::vector<hdf5::stored_chunk> const& chunks) {
    std::vector<std::uint64_t> offsets;
    for (hdf5::stored_chunk const& chunk : chunks) offsets.push_back(chunk.offset);
    return offsets;
}

array_place place_of(hdf5::place const& where, hdf5::dataset const& handle, std::size_t row_bytes) {
    hdf5::dataset_form const form = hdf5::form_of(where, handle);
    if (form.filtered) return {row_bytes, 0, {}};
    if (!form.chunk.empty()) return {row_bytes, form.chunk[0], offsets_of(hdf5::stored_chunks(where, handle))};
    expect(form.offset.has_value(), "an array that has its space");
    return {row_bytes, 0, {*form.offset}};
}

split_places create_split(hdf5::place const& root, hdf5::file const& file, split_plan const& plan) {
    hdf5::place const where = split_place(root.file, plan);
    hdf5::group const group = hdf5::create_group(root, file, plan.split);
    std::vector<std::uint64_t> extent{plan.samples, plan.shape.channels, plan.shape.height, plan.shape.width};
    if (plan.shape.is_row) extent = {plan.samples, plan.shape.width};
    std::vector<std::uint64_t> chunk = extent;
    chunk[0] = std::min(plan.chunk_samples, plan.samples);
    if (chunk[0] == 0) chunk.clear();
    std::uint64_t const blocks = format::block_count(plan.samples, plan.block_samples());
    split_places places;
    hdf5::dataset const images = hdf5::create_dataset(where, group, format::images, plan.type, extent, chunk, plan.gzip_level);
    places.images = place_of({where.file, where.object + "/images"}, images, plan.image_bytes());
    hdf5::create_dataset(where, group, format::image_blocks, element_type::u64, {&blocks, 1}, {});
    if (auto const type = plan.label_type()) {
        hdf5::dataset const labels = hdf5::create_dataset(where, group, format::labels, *type, {extent.data(), 1}, {});
        places.labels = place_of({where.file, where.object + "/labels"}, labels, bytes_of(*type));
        hdf5::create_dataset(where, group, format::label_blocks, element_type::u64, {&blocks, 1}, {});
    }
    write_facts(where, group.get(), plan);
    return places;
}

/// The runs of the file that the arrays take, in order.
std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_runs(file_layout const& layout, std::vector<split_plan> const& plans) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
    for (std::size_t i = 0; i < plans.size(); ++i)
        for (array_place const* place : {&layout.splits[i].images, &layout.splits[i].labels}) {
            if (place->offsets.empty()) continue;
            place->each_run({0, plans[i].samples}, [&](std::uint64_t offset, std::size_t, std::size_t rows) {
                runs.emplace_back(offset, offset + rows * place->row_bytes);
            });
        }
    std::sort(runs.begin(), runs.end());
    return runs;
}

}  // namespace

file_layout create_layout(std::string const& path, std::vector<split_plan> const& plans, writer_options const& options) {
    hdf5::place const where{path, ""};
    hdf5::place const root{path, "/"};
    hdf5::file file = hdf5::create_file(where, hdf5::file_access(where, options.alignment_bytes, nullptr));
    write_root(root, file.get(), plans, options);
    file_layout layout;
    for (split_plan const& plan : plans) layout.splits.push_back(create_split(root, file, plan));
    hdf5::close(where, std::move(file));
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw_system("stat", path);
    layout.bytes = static_cast<std::uint64_t>(status.st_size);
    return layout;
}

void complete_layout(std::string const& path, std::vector<split_plan> const& plans, std::vector<split_contents> const& contents) {
    hdf5::place const whole{path, ""};
    hdf5::place const root{path, "/"};
    hdf5::file file = hdf5::open_file(whole, hdf5::file_access(whole, 1, nullptr), true);
    for (std::size_t i = 0; i < plans.size(); ++i) {
        hdf5::place const where = split_place(path, plans[i]);
        split_contents const& known = contents[i];
        hdf5::group const group = hdf5::open_group(root, file, plans[i].split);
        auto const write = [&](char const* blocks, char const* folded, std::vector<std::uint64_t> const& checksums) {
            hdf5::place const at{path, where.object + "/" + blocks};
            hdf5::dataset handle = hdf5::open_dataset(where, group, blocks);
            hdf5::write(at, handle, {0, checksums.size()}, element_type::u64, checksums.data(), hdf5::transfer(at, false));
            hdf5::close(at, std::move(handle));
            hdf5::write_attribute(where, group.get(), folded, fold_checksums(checksums));
        };
        write(format::image_blocks, format::image_checksum_attribute, known.image_blocks);
        if (plans[i].label_type()) write(format::label_blocks, format::label_checksum_attribute, known.label_blocks);
        if (known.values.any) {
            hdf5::write_attribute(where, group.get(), format::least_attribute, known.values.least);
            hdf5::write_attribute(where, group.get(), format::most_attribute, known.values.most);
        }
    }
    hdf5::close(whole, std::move(file));
}

void restore_layout(std::string const& path, std::string const& fresh, file_layout const& layout,
                    std::vector<split_plan> const& plans) {
    unique_fd const from(::open(fresh.c_str(), O_RDONLY | O_CLOEXEC));
    if (!from) throw_system("open", fresh);
    unique_fd const to(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!to) throw_system("open", path);
    std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
    std::uint64_t position = 0;
    auto const copy_until = [&](std::uint64_t end) {
        while (position < end) {
            std::span<std::uint8_t> const part(buffer.data(), std::min<std::uint64_t>(buffer.size(), end - position));
            read_exactly(from.get(), fresh, position, part);
            write_fully(to.get(), path, position, part);
            position += part.size();
        }
    };
    for (auto const& [begin, end] : taken_runs(layout, plans)) {
        copy_until(begin);
        position = std::max(position, end);
    }
    copy_until(layout.bytes);
    if (::ftruncate(to.get(), static_cast<off_t>(layout.bytes)) != 0) throw_system("ftruncate", path);
}

}  // namespace muster
