#include "io/dataset/dataset_writer_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/units.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/dataset/format.hpp"

namespace muster {

namespace {

unique_fd open_for_writing(std::string const& path) {
    unique_fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) throw_system("open", path, 0, "give an output on a file system that all ranks share");
    return fd;
}

void check(split_plan const& plan) {
    bool const good = !plan.split.empty() && std::all_of(plan.split.begin(), plan.split.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    });
    if (!good || plan.split == "." || plan.split == "..")
        throw error(errc::usage, fmt::format("split '{}': not a name; use letters, digits, '-', '_' and '.' only", plan.split));
    if (plan.samples == 0 || plan.shape.elements() == 0)
        throw error(errc::usage, fmt::format("split {}: {} images of {}: nothing to write; give at least one image", plan.split,
                                             plan.samples, to_string(plan.shape)));
    std::size_t const largest = format::block_samples(plan.image_bytes());
    if (plan.gzip_level != 0 && plan.chunk_samples > largest)
        throw error(errc::usage,
                    fmt::format("split {}: compressed chunks of {} samples of {} bytes: a chunk holds at most 1 MiB; "
                                "give at most {} samples a chunk",
                                plan.split, plan.chunk_samples, plan.image_bytes(), largest));
}

/// A compressed split has one block of checksums a chunk.
split_plan settled(split_plan plan) {
    if (plan.gzip_level != 0) plan.chunk_samples = plan.block_samples();
    return plan;
}

/// The space is taken before the first byte is written, so that a full file system is told at once.
void reserve(int fd, std::string const& path, std::uint64_t bytes) {
    if (::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        throw_system("reserve", fmt::format("{} of {}", format_bytes(bytes), path), 0,
                     "free some space, or write to another file system");
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
        split.contents.label_blocks.assign(plan.classes != 0 ? split.blocks : 0, 0);
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
        throw error(errc::usage, fmt::format("{}: exists; remove it, choose another name, or give --force", path));
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
        text += fmt::format("|{} {} {} {} {} {} {}", plan.split, plan.samples, to_string(plan.shape), plan.chunk_samples,
                            to_string(plan.type), plan.classes, plan.gzip_level);
    return xxh3_128_digits({reinterpret_cast<std::uint8_t const*>(text.data()), text.size()});
}

void dataset_writer::state::share_layout() {
    if (spooled()) return;
    std::vector<std::int64_t> numbers = first() ? pack(layout) : std::vector<std::int64_t>();
    auto count = static_cast<std::int64_t>(numbers.size());
    ranks->broadcast("size of the layout", view_of(std::span(&count, 1)), 0).wait();
    numbers.resize(static_cast<std::size_t>(count));
    ranks->broadcast("layout", view_of(std::span(numbers)), 0).wait();
    if (!first()) layout = unpack_layout(numbers);
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
