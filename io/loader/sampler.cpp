#include "io/loader/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "io/loader/permutation.hpp"

namespace muster {

namespace {

void check(epoch_part const& part, std::size_t samples, spread_rule spread) {
    if (part.world < 1 || part.rank < 0 || part.rank >= part.world)
        throw error(errc::usage, fmt::format("sampler: rank {} of a world of {}; give 0 <= rank < world", part.rank, part.world));
    if (part.start > samples)
        throw error(errc::usage, fmt::format("sampler: epoch {} cannot resume after {} samples: the dataset has {}; start at 0",
                                             part.epoch, part.start, samples));
    if (spread == spread_rule::sharded && part.start % static_cast<std::size_t>(part.world) != 0 && part.start != samples)
        throw error(errc::usage,
                    fmt::format("sampler: a sharded epoch cannot resume after {} samples: that is no multiple of its {} "
                                "ranks; resume with the number of ranks that began it",
                                part.start, part.world));
}

std::uint64_t epoch_key(sampler_options const& options, std::uint64_t epoch) {
    return permutation::mix(permutation::mix(options.seed) + epoch);
}

/// How many of `total` positions dealt out in turn fall to `place`.
std::size_t dealt(std::size_t total, std::size_t place, std::size_t world) {
    return total > place ? (total - place - 1) / world + 1 : 0;
}

/// The rank's place in the dealing, which began with rank 0 at position 0 when it began at `start`. A global epoch is dealt anew
/// from where it is resumed; in a sharded one every rank goes on in its own shard, so the dealing is that of the whole epoch.
struct dealing {
    std::size_t skipped;  ///< positions of this rank's own that are already taken
    std::size_t count;
};

dealing deal(sampler_options const& options, std::size_t samples, epoch_part const& part) {
    std::size_t const world = static_cast<std::size_t>(part.world);
    std::size_t const rank = static_cast<std::size_t>(part.rank);
    bool const sharded = options.spread == spread_rule::sharded;
    std::size_t const skipped = sharded ? dealt(part.start, rank, world) : 0;
    std::size_t const all = sharded ? samples : samples - part.start;
    std::size_t count = dealt(all, rank, world);
    if (options.tail == tail_rule::drop) count = all / world;
    if (options.tail == tail_rule::pad) count = all / world + (all % world != 0 ? 1 : 0);
    return {skipped, count - std::min(count, skipped)};
}

}  // namespace

std::string_view to_string(tail_rule rule) noexcept {
    switch (rule) {
        case tail_rule::exact: return "exact";
        case tail_rule::pad: return "pad";
        case tail_rule::drop: return "drop";
    }
    return "unknown";
}

sampler::sampler(std::size_t samples, sampler_options options) : samples_(samples), options_(options) {}

std::size_t sampler::count(epoch_part const& part) const {
    check(part, samples_, options_.spread);
    return deal(options_, samples_, part).count;
}

void sampler::fill(epoch_part const& part, std::size_t from, std::span<std::uint64_t> out) const {
    check(part, samples_, options_.spread);
    dealing const mine = deal(options_, samples_, part);
    expect(from <= mine.count && out.size() <= mine.count - from, "samples inside the rank's part");
    if (out.empty()) return;

    // In both spreads: sample = first + order(position modulo size), positions `step` apart; the modulo acts on padding alone.
    bool const sharded = options_.spread == spread_rule::sharded;
    std::uint64_t key = epoch_key(options_, part.epoch);
    std::uint64_t first = 0;
    std::uint64_t size = samples_;
    std::uint64_t step = static_cast<std::uint64_t>(part.world);
    std::uint64_t position = part.start + static_cast<std::uint64_t>(part.rank) + from * step;
    if (sharded) {
        hyperslab shard = shard_of(samples_, part.rank, part.world);
        if (shard.empty()) shard = {0, samples_};  // only when padding: there are more ranks than samples
        key = permutation::mix(key + static_cast<std::uint64_t>(part.rank) + 1);
        first = shard.first;
        size = shard.count;
        step = 1;
        position = mine.skipped + from;
    }
    permutation const order(size, key);
    std::size_t done = 0;
    while (done < out.size()) {
        if (position >= size) position %= size;  // padding begins the order again
        std::size_t const run = std::min<std::size_t>(out.size() - done, (size - position - 1) / step + 1);
        std::span<std::uint64_t> const piece = out.subspan(done, run);
        if (options_.shuffle)
            order.fill(position, step, piece);
        else
            for (std::size_t i = 0; i < run; ++i) piece[i] = position + i * step;
        for (std::uint64_t& sample : piece) sample += first;
        position += run * step;
        done += run;
    }
}

std::vector<std::uint64_t> sampler::indices(epoch_part const& part) const {
    std::vector<std::uint64_t> all(count(part));
    fill(part, 0, all);
    return all;
}

rank_range sampler::shorter_ranks(int world, std::uint64_t start) const {
    check({.epoch = 0, .rank = 0, .world = world, .start = start}, samples_, options_.spread);
    if (options_.tail != tail_rule::exact) return {world, 0};
    std::size_t const longest = count({.epoch = 0, .rank = 0, .world = world, .start = start});
    int first = 0;
    while (first < world && count({.epoch = 0, .rank = first, .world = world, .start = start}) == longest) ++first;
    return {first, world - first};
}

}  // namespace muster
