// The way of ranks' states to their nodes before a generation begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launch/wire/messages.hpp"

namespace muster {

struct state_move {
    std::size_t from = 0, to = 0;  ///< nodes; the same where the copy is among those of a neighbour
    wire::kept_copy what;
    bool operator==(state_move const&) const = default;
};

struct state_arrangement {
    std::uint64_t step = 0;  ///< the newest that is whole for all ranks; 0: none
    std::vector<state_move> moves;
    std::vector<int> without;  ///< ranks of which nothing is left, while there is something of others
    bool operator==(state_arrangement const&) const = default;
};

/// `there`: what each node has. `node_of`: where each rank will run. All ranks get the newest step that is whole for all; where there is none, as after ranks went on
/// in place without one, each its own newest, and they settle it among themselves. Pure.
state_arrangement arrange_states(std::vector<std::vector<wire::kept_copy>> const& there, std::vector<std::size_t> const& node_of);

}  // namespace muster
