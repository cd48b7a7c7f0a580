#include "io/hdf5/hyperslab.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace muster {

hyperslab shard_of(std::size_t samples, int rank, int world) {
    expect(world > 0 && rank >= 0 && rank < world, "a rank inside its world");
    std::size_t const ranks = static_cast<std::size_t>(world);
    std::size_t const me = static_cast<std::size_t>(rank);
    std::size_t const each = samples / ranks;
    std::size_t const rest = samples % ranks;
    return {me * each + std::min(me, rest), each + (me < rest ? 1 : 0)};
}

hyperslab shard_of_blocks(std::size_t samples, std::size_t block, int rank, int world) {
    expect(block > 0, "a block of at least one sample");
    std::size_t const blocks = samples / block + (samples % block != 0 ? 1 : 0);
    hyperslab const mine = shard_of(blocks, rank, world);
    std::size_t const first = std::min(samples, mine.first * block);
    std::size_t const end = std::min(samples, mine.end() * block);
    return {first, end - first};
}

hyperslab intersect(hyperslab a, hyperslab b) noexcept {
    std::size_t const first = std::max(a.first, b.first);
    std::size_t const end = std::min(a.end(), b.end());
    return end > first ? hyperslab{first, end - first} : hyperslab{first, 0};
}

}  // namespace muster
