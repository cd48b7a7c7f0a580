#include "io/loader/memory_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "base/process/files.hpp"
#include "base/process/kernel_files.hpp"
#include "base/throw_error.hpp"

namespace muster {

std::string_view to_string(memory_mode mode) noexcept {
    constexpr std::string_view names[]{"automatic", "whole", "mapped", "shard", "shared", "windowed"};
    return names[static_cast<std::size_t>(mode)];
}

memory_mode choose_memory(memory_circumstances const& now) {
    if (now.fits && now.together) return memory_mode::shared;
    if (now.fits) return now.sharded ? memory_mode::shard : memory_mode::whole;
    if (now.windowed) return memory_mode::windowed;
    if (now.mappable) return memory_mode::mapped;
    // A file that cannot be read in pieces: better tried than refused where the sampler leaves it at a shard.
    return memory_mode::shard;
}

void check_options(dataset const& from, sampler const& order, loader_options const& options, bool together) {
    if (options.batch == 0) throw error(errc::usage, "loader: batches of 0 samples; give at least 1");
    if (options.world < 1 || options.rank < 0 || options.rank >= options.world || options.local_size < 1 ||
        options.local_rank < 0 || options.local_rank >= options.local_size)
        throw_error(errc::usage, "loader: rank {} of {}, {} of {} on this node: no such rank; give 0 <= rank < world",
                    options.rank, options.world, options.local_rank, options.local_size);
    if (options.workers == 0 || options.readers == 0)
        throw_error(errc::usage, "loader: {} workers and {} readers; give at least 1", options.workers, options.readers);
    if (order.size() != from.size())
        throw_error(errc::usage, "loader: the sampler is for {} samples, {} has {}; make the sampler of the dataset's size",
                    order.size(), from.info().path, from.size());
    if (options.memory == memory_mode::shard && order.options().spread != spread_rule::sharded)
        throw error(errc::usage,
                    "loader: memory mode shard with a sampler that draws from all samples; give one with the spread \"sharded\" "
                    "(in Python "
                    "sampler=Sampler(data, spread=\"sharded\"))");
    if (options.memory == memory_mode::shared && order.options().spread == spread_rule::sharded)
        throw error(errc::usage,
                    "loader: memory mode shared with a sampler whose ranks draw from their own shards; give it the spread "
                    "\"by_node\"");
    if (options.memory == memory_mode::shared && !together)
        throw error(errc::usage, "loader: memory mode shared without a communicator; make the loader with one");
    if (options.memory == memory_mode::windowed && !order.options().window)
        throw error(errc::usage,
                    "loader: memory mode windowed with a sampler without a window; give one with it: window_for(), in Python "
                    "sampler=Sampler(data, window=(SAMPLES, CHUNKS))");
    if (options.memory == memory_mode::mapped && !from.info().image_offset)
        throw_error(errc::unavailable,
                    "{}: /{}/images is chunked or encoded, which memory mode mapped cannot read; use memory mode whole or "
                    "windowed, or convert without --chunk and --gzip",
                    from.info().path, from.info().split);
    if (options.memory == memory_mode::windowed && !from.info().read_by_chunks)
        throw_error(errc::unavailable,
                    "{}: /{}/images is encoded in another way than by gzip, which memory mode windowed cannot read; use memory "
                    "mode whole, or convert it again",
                    from.info().path, from.info().split);
}

namespace {

/// The names of a version's files.
struct group_files {
    char const* folder;
    char const* limit;
    char const* use;
    char const* droppable;  ///< a line of memory.stat
};
constexpr group_files version_2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr group_files version_1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

void take_group(memory_room& room, std::string const& root, group_files const& names, std::string group) {
    while (true) {
        std::string const folder = root + names.folder + group;
        auto const limit = parse_count(read_text_file(folder + "/" + names.limit));
        auto const used = parse_count(read_text_file(folder + "/" + names.use));
        if (limit && used) {
            std::uint64_t const droppable = count_in(read_text_file(folder + "/memory.stat"), names.droppable).value_or(0);
            std::uint64_t const held = *used - std::min(*used, droppable);
            std::uint64_t const left = *limit - std::min(*limit, held);
            if (left < room.bytes) room = {left, fmt::format("limit of the control group {}", group.empty() ? "/" : group)};
        }
        if (group.empty()) return;
        group.resize(group.find_last_of('/'));
    }
}

}  // namespace

memory_room available_memory(std::string const& root) {
    memory_room room{std::numeric_limits<std::uint64_t>::max(), "nothing"};
    if (auto const kib = count_in(read_text_file(root + "/proc/meminfo"), "MemAvailable")) room = {*kib * 1024, "the machine"};
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        // "4:memory:/job_7" in version 1, "0::/job_7" in version 2
        std::size_t const first = line.find(':');
        std::size_t const second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
        std::string const controllers = line.substr(first + 1, second - first - 1);
        std::string group = line.substr(second + 1);
        if (group == "/") group.clear();
        if (controllers.empty()) take_group(room, root, version_2, group);
        if (("," + controllers + ",").find(",memory,") != std::string::npos) take_group(room, root, version_1, group);
    }
    return room;
}

}  // namespace muster
