#include "io/dataset/dataset_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "base/codec/codec.hpp"
#include "base/letters.hpp"
#include "base/process/files.hpp"
#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/chunk_spool.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/dataset/file_layout.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/dataset/format.hpp"
#include "io/dataset/write_journal.hpp"

namespace muster {

/// A split while it is written.
struct written_split {
    std::size_t first_block = 0;  ///< in the journal
    std::size_t blocks = 0;
    split_contents contents;  ///< checksums of other ranks' blocks are 0 until close()
    std::vector<std::int32_t> done;
};

/// It has the functions of dataset_writer, and their steps. open(), gather() and close() are collective.
struct dataset_writer::state {
    state(std::string path_, std::vector<split_plan> plans_, writer_options options_, std::shared_ptr<communicator> ranks_);

    ~state();

    bool first() const { return ranks->rank() == 0; }
    std::string fresh() const { return partial + ".fresh"; }
    std::string spool_path() const { return partial + ".spool"; }
    bool spooled() const {
        return std::any_of(plans.begin(), plans.end(), [](split_plan const& plan) { return plan.gzip_level != 0; });
    }

    void open();

    /// Rank 0: locks, and makes the file or takes the one that is there. Returns whether there is one to go on with.
    bool prepare();

    /// Plans are part of it: with other ones the blocks lie elsewhere.
    std::string identity_of_all() const;

    void share_layout();

    hyperslab rows_of(std::size_t split, std::size_t block) const {
        std::size_t const size = plans[split].block_samples();
        return intersect({block * size, size}, {0, plans[split].samples});
    }

    /// Finds what an earlier writer did, each rank in its part: a block counts whose bytes are those that the journal tells of.
    void take_up();

    void take_up_block(std::size_t split, std::size_t block);

    void note(std::size_t split, std::size_t block, block_record const& record, std::span<std::uint8_t const> image_data);

    void read_array(array_place const& place, hyperslab rows, std::span<std::uint8_t> out) const;
    void write_array(array_place const& place, hyperslab rows, std::span<std::uint8_t const> bytes) const;

    std::vector<hyperslab> share(std::size_t split) const;

    void write(std::size_t split, hyperslab rows, std::span<std::uint8_t const> image_data,
               std::span<std::uint8_t const> label_data);

    void close();

    /// All ranks' checksums and ranges on every rank.
    void gather();

    void complete();

    std::string path;
    std::string partial;
    std::vector<split_plan> plans;
    writer_options options;
    std::shared_ptr<communicator> ranks;  ///< its own for one process alone, else the caller's, not owned
    bool owner = false;                   ///< of the journal's lock: what is left is this process' to remove
    bool finished = false;
    write_journal journal;
    file_layout layout;
    unique_fd file;
    std::optional<chunk_spool> spool;  ///< of compressed blocks
    std::vector<written_split> splits;
    std::uint64_t found = 0;
    std::vector<std::uint8_t> images;  ///< of take_up_block()
    std::vector<std::uint8_t> labels;
};

namespace {

void make_durable(std::string const& path) {
    unique_fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) throw_system("fsync", path);
}

}  // namespace

std::optional<element_type> split_plan::label_type() const noexcept {
    return targets ? element_type::f32 : format::label_type(classes);
}

std::size_t split_plan::label_bytes() const noexcept {
    auto const label = label_type();
    return label ? bytes_of(*label) : 0;
}

std::size_t split_plan::block_samples() const noexcept {
    std::size_t const largest = format::block_samples(image_bytes());
    return gzip_level != 0 && chunk_samples != 0 ? std::min({chunk_samples, samples, largest}) : largest;
}

dataset_writer::state::~state() {
    if (owner && !finished) {
        for (std::string const& name : {partial, fresh(), spool_path(), write_journal::path_of(path)}) ::unlink(name.c_str());
    }
}

void dataset_writer::state::note(std::size_t split, std::size_t block, block_record const& record,
                                 std::span<std::uint8_t const> image_data) {
    split_contents& contents = splits[split].contents;
    contents.image_blocks[block] = record.images;
    if (!contents.label_blocks.empty()) contents.label_blocks[block] = record.labels;
    contents.values.add(range_of(plans[split].type, image_data));
}

void dataset_writer::state::read_array(array_place const& place, hyperslab rows, std::span<std::uint8_t> out) const {
    place.each_run(rows, [&](std::uint64_t offset, std::size_t row, std::size_t count) {
        read_exactly(file.get(), partial, offset, out.subspan(row * place.row_bytes, count * place.row_bytes));
    });
}

void dataset_writer::state::write_array(array_place const& place, hyperslab rows, std::span<std::uint8_t const> bytes) const {
    place.each_run(rows, [&](std::uint64_t offset, std::size_t row, std::size_t count) {
        write_fully(file.get(), partial, offset, bytes.subspan(row * place.row_bytes, count * place.row_bytes));
    });
}

std::vector<hyperslab> dataset_writer::state::share(std::size_t split) const {
    std::vector<std::size_t> todo;
    for (std::size_t block = 0; block < splits[split].blocks; ++block)
        if (splits[split].done[block] == 0) todo.push_back(block);
    hyperslab const mine = shard_of(todo.size(), ranks->rank(), ranks->size());
    std::vector<hyperslab> runs;
    for (std::size_t i = mine.first; i < mine.end(); ++i) {
        hyperslab const rows = rows_of(split, todo[i]);
        if (!runs.empty() && runs.back().end() == rows.first)
            runs.back().count += rows.count;
        else
            runs.push_back(rows);
    }
    return runs;
}

void dataset_writer::state::write(std::size_t split, hyperslab rows, std::span<std::uint8_t const> image_data,
                                  std::span<std::uint8_t const> label_data) {
    split_plan const& plan = plans.at(split);
    std::size_t const size = plan.block_samples();
    expect(rows.first % size == 0 && rows.end() <= plan.samples && (rows.count % size == 0 || rows.end() == plan.samples),
           "whole blocks of the split");
    expect(image_data.size() == rows.count * plan.image_bytes() && label_data.size() == rows.count * plan.label_bytes(),
           "as many bytes as the rows have");
    if (rows.empty()) return;
    if (!spool) {
        write_array(layout.splits[split].images, rows, image_data);
        if (!label_data.empty()) write_array(layout.splits[split].labels, rows, label_data);
    }
    for (std::size_t block = rows.first / size; block * size < rows.end(); ++block) {
        hyperslab const part = rows_of(split, block);
        auto const block_images =
            image_data.subspan((part.first - rows.first) * plan.image_bytes(), part.count * plan.image_bytes());
        auto const block_labels =
            label_data.subspan((part.first - rows.first) * plan.label_bytes(), part.count * plan.label_bytes());
        block_record record{xxh3_64(block_images), xxh3_64(block_labels), 0};
        if (spool) record.encoded_bytes = spool->write(split, block, block_images, block_labels);
        note(split, block, record, block_images);
        if (!options.identity.empty() || spool) journal.put(splits[split].first_block + block, record);
    }
}

void dataset_writer::state::close() {
    gather();
    run_step(*ranks, "closing a dataset file", [&] {
        file.reset();  // on a network file system this passes on what was written
        if (spool) spool->close();
    });
    run_step(*ranks, "completing a dataset file", [&] {
        if (first()) complete();
    });
    finished = true;
}

void dataset_writer::state::gather() {
    for (written_split& split : splits) {
        for (auto* checksums : {&split.contents.image_blocks, &split.contents.label_blocks}) {
            // Blocks of other ranks are 0 here. The same bits: a signed and an unsigned type of one size may alias, and both wrap.
            std::span const bits(reinterpret_cast<std::int64_t*>(checksums->data()), checksums->size());
            if (!bits.empty()) ranks->allreduce("checksums", view_of(bits), reduction::sum).wait();
        }
        value_range& values = split.contents.values;
        double const none = std::numeric_limits<double>::infinity();
        double bounds[2] = {values.any ? -values.least : -none, values.any ? values.most : -none};
        ranks->allreduce("range of values", view_of(std::span(bounds)), reduction::max).wait();
        values = bounds[1] < -bounds[0] ? value_range{} : value_range{-bounds[0], bounds[1], true};
    }
}

void dataset_writer::state::complete() {
    std::vector<split_contents> contents;
    for (written_split const& split : splits) contents.push_back(split.contents);
    if (spool) {
        if (::unlink(partial.c_str()) != 0 && errno != ENOENT) throw_system("unlink", partial);
        create_layout(partial, plans, options);
        std::vector<std::vector<std::uint64_t>> sizes;
        for (written_split const& split : splits) {
            auto& of_split = sizes.emplace_back();
            for (std::size_t block = 0; block < split.blocks; ++block) {
                auto const record = journal.get(split.first_block + block);
                expect(record.has_value(), "a record of every block");
                of_split.push_back(record->encoded_bytes);
            }
        }
        spool->unload(partial, sizes);
    }
    complete_layout(partial, plans, contents);
    if (options.durable) make_durable(partial);
    if (std::rename(partial.c_str(), path.c_str()) != 0) throw_system("rename", fmt::format("{} to {}", partial, path));
    if (spooled()) ::unlink(spool_path().c_str());
    ::unlink(write_journal::path_of(path).c_str());
    std::string const folder = std::filesystem::path(path).parent_path().string();
    if (options.durable) make_durable(folder.empty() ? "." : folder);
}

dataset_writer::dataset_writer(std::string path, std::vector<split_plan> plans, writer_options options)
    : state_(std::make_unique<state>(std::move(path), std::move(plans), std::move(options), alone())) {
    state_->open();
}

dataset_writer::dataset_writer(std::string path, std::vector<split_plan> plans, writer_options options, communicator& ranks)
    : state_(std::make_unique<state>(std::move(path), std::move(plans), std::move(options),
                                     std::shared_ptr<communicator>(std::shared_ptr<void>(), &ranks))) {
    state_->open();
}

dataset_writer::~dataset_writer() = default;

std::vector<split_plan> const& dataset_writer::plans() const noexcept {
    return state_->plans;
}
std::vector<hyperslab> dataset_writer::share(std::size_t split) const {
    return state_->share(split);
}
std::uint64_t dataset_writer::found_bytes() const noexcept {
    return state_->found;
}
void dataset_writer::write(std::size_t split, hyperslab rows, std::span<std::uint8_t const> images,
                           std::span<std::uint8_t const> labels) {
    state_->write(split, rows, images, labels);
}
void dataset_writer::close() {
    state_->close();
}

namespace {

unique_fd open_for_writing(std::string const& path) {
    unique_fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) throw_system("open", path, 0, "give an output on a file system that all ranks share");
    return fd;
}

void check(split_plan const& plan) {
    bool const good = !plan.split.empty() && std::ranges::all_of(plan.split, [](char c) {
        return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
    });
    if (!good || plan.split == "." || plan.split == "..")
        throw_error(errc::usage, "split '{}': not a name; use letters, digits, '-', '_' and '.' only", plan.split);
    if (plan.samples == 0 || plan.shape.elements() == 0)
        throw_error(errc::usage, "split {}: {} images of {}: nothing to write; give at least one image", plan.split, plan.samples,
                    to_string(plan.shape));
    std::size_t const largest = format::block_samples(plan.image_bytes());
    if (plan.gzip_level != 0 && plan.chunk_samples > largest)
        throw_error(
            errc::usage,
            "split {}: compressed chunks of {} samples of {} bytes: a chunk holds at most 1 MiB; give at most {} samples a chunk",
            plan.split, plan.chunk_samples, plan.image_bytes(), largest);
}

/// A compressed split has one block of checksums a chunk.
split_plan settled(split_plan plan) {
    if (plan.gzip_level != 0) plan.chunk_samples = plan.block_samples();
    return plan;
}

/// The space is taken before the first byte is written, so that a full file system is an error at once.
void reserve(int fd, std::string const& path, std::uint64_t bytes) {
    if (::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        throw_system("reserve", fmt::format("{} of {}", format_bytes(bytes), path), 0,
                     errno == EFBIG ? too_large_hint : "free some space, or write to another file system");
}

}  // namespace

dataset_writer::state::state(std::string path_, std::vector<split_plan> plans_, writer_options options_,
                             std::shared_ptr<communicator> ranks_)
    : path(std::move(path_)), partial(path + ".partial"), options(std::move(options_)), ranks(std::move(ranks_)) {
    run_step(*ranks, "planning a dataset file", [&] {
        for (split_plan const& plan : plans_) check(plan);
    });
    for (split_plan& plan : plans_) plans.push_back(settled(std::move(plan)));
    std::size_t blocks = 0;
    for (split_plan const& plan : plans) {
        written_split& split = splits.emplace_back();
        split.first_block = blocks;
        split.blocks = format::block_count(plan.samples, plan.block_samples());
        split.contents.image_blocks.assign(split.blocks, 0);
        split.contents.label_blocks.assign(plan.label_type() ? split.blocks : 0, 0);
        split.done.assign(split.blocks, 0);
        blocks += split.blocks;
    }
}

void dataset_writer::state::open() {
    std::int64_t resumes = 0;
    run_step(*ranks, "creating a dataset file", [&] {
        if (first()) resumes = prepare() ? 1 : 0;
    });
    ranks->broadcast("resumes", view_of(std::span(&resumes, 1)), 0).wait();
    share_layout();
    run_step(*ranks, "opening a dataset file", [&] {
        if (!first()) journal = write_journal::join(path);
        if (spooled())
            spool.emplace(spool_path(), plans);
        else
            file = open_for_writing(partial);
    });
    if (resumes != 0) take_up();
}

bool dataset_writer::state::prepare() {
    journal = write_journal::lock(path);
    owner = true;
    if (!options.replace && ::access(path.c_str(), F_OK) == 0)
        throw_error(errc::usage, "{}: exists; remove it, choose another name, or give --force", path);
    std::string const data = spooled() ? spool_path() : partial;
    std::string const identity = options.identity.empty() ? "" : identity_of_all();
    bool const resumes =
        !options.restart && !identity.empty() && journal.identity() == identity && ::access(data.c_str(), F_OK) == 0;
    if (!resumes) {
        if (::unlink(data.c_str()) != 0 && errno != ENOENT) throw_system("unlink", data);
        journal.begin(identity);
    }
    if (spooled()) {
        chunk_spool::create(spool_path());
        return resumes;
    }
    // The same plans give the same bytes: those outside the arrays are put back, whatever state they were left in.
    std::string const made = resumes ? fresh() : partial;
    if (::unlink(made.c_str()) != 0 && errno != ENOENT) throw_system("unlink", made);
    layout = create_layout(made, plans, options);
    if (resumes) {
        restore_layout(partial, made, layout, plans);
        ::unlink(made.c_str());
    }
    reserve(open_for_writing(partial).get(), partial, layout.bytes);
    return resumes;
}

std::string dataset_writer::state::identity_of_all() const {
    std::string text = fmt::format("{}|{}|{}", options.identity, options.alignment_bytes, options.name);
    for (split_plan const& plan : plans)
        text += fmt::format("|{} {} {} {} {} {} {} {}", plan.split, plan.samples, to_string(plan.shape), plan.chunk_samples,
                            to_string(plan.type), plan.classes, plan.targets, plan.gzip_level);
    return xxh3_128_digits(text);
}

void dataset_writer::state::share_layout() {
    if (spooled()) return;
    std::string bytes = first() ? codec::encode(layout) : std::string();
    broadcast_bytes(*ranks, "the layout", bytes);
    if (!first()) codec::reader(bytes) >> layout;
}

void dataset_writer::state::take_up() {
    run_step(*ranks, "reading what is written so far", [&] {
        for (std::size_t split = 0; split < plans.size(); ++split) {
            hyperslab const mine = shard_of(splits[split].blocks, ranks->rank(), ranks->size());
            for (std::size_t block = mine.first; block < mine.end(); ++block) take_up_block(split, block);
        }
    });
    std::int64_t bytes = 0;
    for (std::size_t split = 0; split < plans.size(); ++split) {
        ranks->allreduce("blocks done", view_of(std::span(splits[split].done)), reduction::max).wait();
        for (std::size_t block = 0; block < splits[split].blocks; ++block)
            if (splits[split].done[block] != 0)
                bytes += static_cast<std::int64_t>(rows_of(split, block).count *
                                                   (plans[split].image_bytes() + plans[split].label_bytes()));
    }
    found = static_cast<std::uint64_t>(bytes);
}

void dataset_writer::state::take_up_block(std::size_t split, std::size_t block) {
    written_split& to = splits[split];
    split_plan const& plan = plans[split];
    auto const record = journal.get(to.first_block + block);
    if (!record) return;
    hyperslab const rows = rows_of(split, block);
    images.resize(rows.count * plan.image_bytes());
    labels.resize(rows.count * plan.label_bytes());
    if (spool) {
        if (!spool->read(split, block, record->encoded_bytes, images, labels)) return;
    } else {
        read_array(layout.splits[split].images, rows, images);
        if (!labels.empty()) read_array(layout.splits[split].labels, rows, labels);
    }
    if (xxh3_64(images) != record->images || (!labels.empty() && xxh3_64(labels) != record->labels)) return;
    note(split, block, *record, images);
    to.done[block] = 1;
}

}  // namespace muster
