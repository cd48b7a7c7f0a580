// The way of ranks' states to their nodes before a generation begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "launch/keep/copy_shelf.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

struct state_move {
    std::size_t from = 0, to = 0;  ///< nodes; the same where the copy is among those of a neighbour
    wire::kept_copy what;
    bool operator==(state_move const&) const = default;
};

struct state_arrangement {
    std::uint64_t step = 0;        ///< the newest that is whole for all ranks of a generation; 0: none
    std::uint64_t generation = 0;  ///< which, or the one of which states are used otherwise
    int world_size = 0;            ///< of it; 0: there is nothing
    std::vector<int> parts;        ///< where each rank finds its state, and keeps on
    int free_part = 0;             ///< from here on they are nobody's
    std::vector<state_move> moves;
    std::vector<int> without;          ///< its ranks of which nothing is left
    std::vector<state_move> left_out;  ///< of a commit that is whole: copies of ranks that none follows, where they are
    bool operator==(state_arrangement const&) const = default;
};

/// `there`: what each node has. `node_of`: where each rank will run; the number of nodes where nothing holds what it commits, so that no commit is whole for all.
/// The ranks get what the ranks of the same numbers had in the latest generation of which a commit is whole, the newest one; where that was smaller, further ranks get
/// nothing. Where no commit is whole, the newest of the latest generation stays with its ranks, but not with all of another number of ranks, as it would seem common
/// to them; they settle it among themselves. Pure.
state_arrangement arrange_states(std::vector<std::vector<wire::kept_copy>> const& there, std::vector<std::size_t> const& node_of);

/// Where ranks without successors on this node have their own copies.
std::vector<int> left_out_parts(state_arrangement const& made, std::size_t node);

/// For so many ranks where one node holds all: what they go on from stays in `store`, and what ranks without successors have of the same commit.
state_arrangement arrange_alone(copy_shelf& store, std::size_t ranks);

wire::kept_copy describe(copy_shelf::copy const& one, bool of_neighbour);
/// What a keeper tells of its memory.
std::vector<wire::kept_copy> list_copies(copy_shelf& store, bool of_neighbour);

}  // namespace muster
