// Decides which states move to which nodes before a generation begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launch/keep/machines/copy_shelf.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

struct state_move {
    std::size_t from = 0, to = 0;  ///< nodes; equal if the copy is among those of a neighbour
    wire::kept_copy what;
    bool operator==(state_move const&) const = default;
};

struct state_arrangement {
    std::uint64_t step = 0;        ///< the newest that is whole for all ranks of a generation; or 0
    std::uint64_t generation = 0;  ///< that generation, or the one whose states are used otherwise
    int world_size = 0;            ///< that generation's; 0: there is nothing
    std::vector<int> parts;        ///< where each rank finds and keeps its state
    int free_part = 0;             ///< from here on parts are free
    std::vector<state_move> moves;
    std::vector<int> without;  ///< its ranks of which nothing is left
    /// Copies, from a whole commit, of ranks without successors: they stay, and go on to the next nodes as those of other ranks.
    std::vector<state_move> left_out;
    bool operator==(state_arrangement const&) const = default;
};

/// `there`: what each node has. `node_of`: where each rank will run; the number of nodes if nothing holds its commits, so that no
/// commit is whole for all. The ranks get what the ranks of the same numbers had in the newest whole commit of the latest
/// generation with one; if that was smaller, further ranks get nothing. If no commit is whole, the newest of the latest
/// generation stays with its ranks, but not with all of another number of ranks, for whom it would seem common; they settle it
/// among themselves. Pure.
state_arrangement arrange_states(std::vector<std::vector<wire::kept_copy>> const& there, std::vector<std::size_t> const& node_of);

/// Returns where this node has, after the moves, copies of ranks without successors.
std::vector<int> left_out_parts(state_arrangement const& made, std::size_t node);

/// Arranges this many ranks if one node holds all: what they continue from stays in `store`, and so does what ranks without
/// successors have of the same commit.
state_arrangement arrange_alone(copy_shelf& store, std::size_t ranks);

wire::kept_copy describe(copy_shelf::copy const& one, bool of_neighbour);
/// Returns what a keeper reports about its memory.
std::vector<wire::kept_copy> list_copies(copy_shelf& store, bool of_neighbour);

}  // namespace muster
