// A sampler: tells a rank its samples of an epoch and their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/hdf5/hyperslab.hpp"

namespace muster {

/// What happens when the samples do not divide evenly among the ranks.
enum class tail_rule {
    exact,  ///< every sample exactly once; some ranks have one fewer
    pad,    ///< every rank as many as the longest: the first samples of the order come a second time
    drop,   ///< every rank as many as the shortest: the last samples of the order are left out in this epoch
};
std::string_view to_string(tail_rule rule) noexcept;

/// Among which samples a rank draws.
enum class spread_rule {
    global,  ///< one order of all samples for (seed, epoch), whatever the number of ranks; rank r takes positions r, r+world, …
    sharded,  ///< a rank draws from its own shard_of() only, shuffled anew each epoch: for shards that do not fit a node's memory
              ///< together. Exact cover still, but the order depends on the number of ranks and samples never change their rank.
};

struct sampler_options {
    std::uint64_t seed = 42;
    bool shuffle = true;
    tail_rule tail = tail_rule::exact;
    spread_rule spread = spread_rule::global;
    bool operator==(sampler_options const&) const = default;
};

/// A rank's part of an epoch. `start` is how many samples all ranks together have already taken of this epoch (to resume in
/// mid-epoch, with `spread_rule::global` also with another number of ranks; with `sharded` with the same number only).
struct epoch_part {
    std::uint64_t epoch = 0;
    int rank = 0;
    int world = 1;
    std::uint64_t start = 0;
    bool operator==(epoch_part const&) const = default;
};

/// The ranks first … first+count-1.
struct rank_range {
    int first = 0;
    int count = 0;
    bool operator==(rank_range const&) const = default;
};

/// Pure and thread safe: equal arguments give equal results on every machine (io/loader/permutation.hpp defines the shuffle; its
/// key is mix(mix(seed) + epoch), for `sharded` mix(mix(mix(seed) + epoch) + rank + 1)). Throws errc::usage on a rank outside its
/// world, a start beyond the samples, or one that a sharded epoch of this world cannot have reached (no multiple of `world`).
class sampler {
  public:
    explicit sampler(std::size_t samples, sampler_options options = {});

    std::size_t size() const noexcept { return samples_; }
    sampler_options const& options() const noexcept { return options_; }

    /// How many samples this rank takes.
    std::size_t count(epoch_part const& part) const;

    /// Samples number `from` … `from + out.size() - 1` of this rank's part, into `out`. Needs from + out.size() <= count(part).
    /// Costs 14 to 18 ns a sample on the machine it was measured on, and no memory.
    void fill(epoch_part const& part, std::size_t from, std::span<std::uint64_t> out) const;

    /// The whole part.
    std::vector<std::uint64_t> indices(epoch_part const& part) const;
    std::vector<std::uint64_t> indices(std::uint64_t epoch, int rank, int world) const {
        return indices({.epoch = epoch, .rank = rank, .world = world, .start = 0});
    }

    /// The ranks that take one sample fewer than the others in an epoch begun at `start`; none with `pad` and `drop`.
    rank_range shorter_ranks(int world, std::uint64_t start = 0) const;

  private:
    std::size_t samples_;
    sampler_options options_;
};

}  // namespace muster
