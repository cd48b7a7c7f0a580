#include "kept_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "schedule.hpp"

namespace muster::simulation {

kept_schedule draw_kept_schedule(std::uint64_t seed) {
    dice by(seed ^ 0xA5A5A5A5u);
    kept_schedule made{.seed = seed};
    made.nodes = by.between(2, 4);
    made.per_node = by.between(1, 2);
    made.spare_nodes = by.one_in(3) ? 1 : 0;
    made.least = by.one_in(2) ? 1 : made.nodes * made.per_node;
    made.restarts = by.between(1, 4);
    made.to_neighbours = !by.one_in(5);
    made.step_s = by.seconds(0.2, 1);
    using kind = kept_fault::kind;
    int const count = by.between(1, 4);
    double const around_s = by.seconds(3, 15);
    bool const clustered = by.one_in(2);
    for (int i = 0; i < count; ++i) {
        kept_fault one{.what = static_cast<kind>(by.below(static_cast<int>(kind::count_)))};
        if (by.one_in(3)) one.what = by.one_in(2) ? kind::rank_killed : kind::keeper_killed;
        one.at_s = clustered ? around_s + by.seconds(0, 3) : by.seconds(1, 40);
        one.whom = one.what == kind::rank_killed || one.what == kind::rank_fails ? by.below(made.nodes * made.per_node)
                                                                                 : by.below(made.nodes + made.spare_nodes);
        one.lasts_s = by.one_in(3) ? -1 : by.seconds(0.2, 20);
        if (one.what >= kind::memory_full) one.lasts_s = by.seconds(1, 20);
        made.faults.push_back(one);
    }
    // A fault of a keeper matters when the ranks begin again.
    if (by.one_in(2))
        made.faults.push_back(
            {.what = kind::rank_killed, .at_s = by.seconds(5, 45), .whom = by.below(made.nodes * made.per_node)});
    // … and one of a rank just after they have, with fewer ranks perhaps.
    if (by.one_in(8)) {
        double const at_s = by.seconds(3, 20);
        made.faults.push_back({.what = kind::node_lost, .at_s = at_s, .whom = by.below(made.nodes)});
        made.faults.push_back({.what = kind::rank_killed, .at_s = at_s + by.seconds(14, 16.5), .whom = 0});
    }
    return made;
}

std::string describe(kept_schedule const& of) {
    return fmt::format("{} ranks on {} nodes, {} spare, at least {}, {} restarts, kept {}", of.nodes * of.per_node, of.nodes,
                       of.spare_nodes, of.least, of.restarts, of.to_neighbours ? "by the next node, too" : "on their nodes");
}

std::string describe(kept_fault const& one) {
    constexpr std::array<char const*, static_cast<std::size_t>(kept_fault::kind::count_)> names{
        "rank {} is killed",
        "rank {} fails",
        "the keeper of node {} is killed",
        "the keeper of node {} is stopped",
        "node {} is lost",
        "the leader is killed ({})",
        "the leader is stopped ({})",
        "the next copy from node {} is cut off",
        "memory of node {} is full",
        "copies are slow ({})",
        "no keeper can be started on node {}"};
    return fmt::format("at {:.3f} s {} ({:.2f} s)", one.at_s,
                       fmt::format(fmt::runtime(names[static_cast<std::size_t>(one.what)]), one.whom), one.lasts_s);
}

}  // namespace muster::simulation
