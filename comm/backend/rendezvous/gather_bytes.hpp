// A gathering of bytes among ranks, given to backends that need one before they can send by themselves.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Every rank's bytes in the order of the ranks, given this rank's and a deadline. Collective; the same number of bytes on every rank.
using gather_function =
    std::function<std::vector<std::vector<std::byte>>(identity const&, std::span<std::byte const> mine, duration deadline)>;

/// Cuts what an allgather of `ranks` equal parts brought into the part of each rank.
inline std::vector<std::vector<std::byte>> split_by_rank(std::span<std::byte const> all, std::size_t ranks) {
    std::vector<std::vector<std::byte>> parts;
    std::size_t const each = all.size() / ranks;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        auto const part = all.subspan(rank * each, each);
        parts.emplace_back(part.begin(), part.end());
    }
    return parts;
}

}  // namespace muster
