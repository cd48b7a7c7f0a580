// A schedule of kept states: nodes, ranks, and faults of them and of those that keep what they commit, as a seed decides them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::simulation {

struct kept_fault {
    enum class kind {
        rank_killed,  ///< by a signal from outside
        rank_fails,   ///< by its own program
        keeper_killed,
        keeper_stopped,  ///< for `lasts_s`; below 0: for ever
        node_lost,
        leader_killed,
        leader_stopped,
        cut,          ///< the next copy from this node does not arrive
        memory_full,  ///< no copy finds room on this node, for `lasts_s`
        slow,         ///< copies take long, for `lasts_s`
        no_start,     ///< no keeper can be started on this node, for `lasts_s`
        count_,
    };
    kind what = kind::rank_killed;
    double at_s = 0;
    int whom = 0;  ///< a rank or a node
    double lasts_s = -1;
};

struct kept_schedule {
    std::uint64_t seed = 0;
    int nodes = 3, per_node = 2, spare_nodes = 0, least = 1, restarts = 3;
    bool to_neighbours = true;
    double step_s = 0.5;  ///< from commit to commit
    std::vector<kept_fault> faults;
};

kept_schedule draw_kept_schedule(std::uint64_t seed);
std::string describe(kept_schedule const& of);
std::string describe(kept_fault const& one);

}  // namespace muster::simulation
