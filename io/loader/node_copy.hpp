// One copy of a dataset's bytes a node: fills it on one rank, maps it read-only on the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "comm/communicator.hpp"
#include "io/loader/mapped_memory.hpp"

namespace muster {

/// The ranks of `ranks` that share this rank's node, by what each knows of its node: the lowest of them, how many there are, and
/// this one's place. They need not follow each other. Collective.
struct node_ranks {
    int first = 0;
    int count = 1;
    int place = 0;
};
node_ranks ranks_of_node(communicator& ranks);

/// Collective. Memory of `bytes` that all ranks of a node see, read only: on the node's lowest rank `fill` writes it, on the
/// others it is called with an empty span (to take part where reading is collective). It has no name anywhere: the kernel frees
/// it with the last process that maps it, also if all are killed. `large_pages`: on pages of 2 MiB that the node has reserved
/// (vm.nr_hugepages); else on those that it gives to shared memory by itself. All ranks throw if one fails: errc::system where
/// there is not enough memory or no such pages, errc::unavailable where a rank may not open the memory of another (other users,
/// other PID namespaces).
mapped_memory share_on_node(communicator& ranks, std::size_t bytes, bool large_pages,
                            std::function<void(std::span<std::uint8_t>)> const& fill);

}  // namespace muster
