#include "io/loader/memory_choice.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace muster {

std::string_view to_string(memory_mode mode) noexcept {
    switch (mode) {
        case memory_mode::automatic: return "automatic";
        case memory_mode::whole: return "whole";
        case memory_mode::mapped: return "mapped";
        case memory_mode::shard: return "shard";
        case memory_mode::shared: return "shared";
        case memory_mode::windowed: return "windowed";
    }
    return "unknown";
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
        throw error(errc::usage, fmt::format("loader: rank {} of {}, {} of {} on this node: no such rank; give 0 <= rank < world",
                                             options.rank, options.world, options.local_rank, options.local_size));
    if (options.workers == 0 || options.readers == 0)
        throw error(errc::usage,
                    fmt::format("loader: {} workers and {} readers; give at least 1", options.workers, options.readers));
    if (order.size() != from.size())
        throw error(errc::usage,
                    fmt::format("loader: the sampler is for {} samples, {} has {}; make the sampler of the dataset's size",
                                order.size(), from.info().path, from.size()));
    if (options.memory == memory_mode::shard && order.options().spread != spread_rule::sharded)
        throw error(
            errc::usage,
            "loader: memory mode shard with a sampler that draws from all samples; give the sampler spread_rule::sharded");
    if (options.memory == memory_mode::shared && order.options().spread == spread_rule::sharded)
        throw error(errc::usage,
                    "loader: memory mode shared with a sampler whose ranks draw from shards of their own; give it "
                    "spread_rule::by_node");
    if (options.memory == memory_mode::shared && !together)
        throw error(errc::usage, "loader: memory mode shared without a communicator; make the loader with one");
    if (options.memory == memory_mode::windowed && !order.options().window)
        throw error(errc::usage,
                    "loader: memory mode windowed with a sampler without a window; give the sampler one (window_for)");
    if (options.memory == memory_mode::mapped && !from.info().image_offset)
        throw error(errc::unavailable,
                    fmt::format("{}: /{}/images is chunked or encoded, which memory mode mapped cannot read; use "
                                "memory mode whole or windowed, or convert without --chunk and --gzip",
                                from.info().path, from.info().split));
    if (options.memory == memory_mode::windowed && !from.info().read_by_chunks)
        throw error(errc::unavailable,
                    fmt::format("{}: /{}/images is encoded in another way than by gzip, which memory mode windowed cannot read; "
                                "use memory mode whole, or convert it again",
                                from.info().path, from.info().split));
}

}  // namespace muster
