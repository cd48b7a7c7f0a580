// A run of consecutive samples, and the cut of a dataset into one run a rank.
#pragma once

#include <cstddef>

namespace muster {

/// Samples first … first+count-1 of a dataset. `count` may be 0: a rank with nothing still takes part in collective calls.
struct hyperslab {
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t end() const noexcept { return first + count; }
    bool empty() const noexcept { return count == 0; }
    bool operator==(hyperslab const&) const = default;
};

/// The part of `samples` that `rank` of `world` holds: in order of rank, without gap or overlap, sizes that differ by at most
/// one, the larger ones first. Ranks beyond the number of samples get an empty slab at the end. Pure; needs 0 <= rank < world.
hyperslab shard_of(std::size_t samples, int rank, int world);

/// The same in whole blocks of `block` samples (the last block may be short), so that no block is cut between two ranks.
hyperslab shard_of_blocks(std::size_t samples, std::size_t block, int rank, int world);

/// The samples that both have; empty if none.
hyperslab intersect(hyperslab a, hyperslab b) noexcept;

}  // namespace muster
