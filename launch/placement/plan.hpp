// Plans the whole job: maps and binds the ranks, for muster plan to show.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/hardware/topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/allocation.hpp"

namespace muster {

/// A node's machine, and the bindings of its ranks by local rank. Equal nodes share one.
struct planned_node {
    topology machine;
    std::vector<binding> bindings;
    bool operator==(planned_node const&) const = default;
};

struct plan {
    allocation given;
    mapping map;
    std::vector<planned_node> shapes;
    std::vector<int> shape_of_node;  ///< by node of the allocation: its index in `shapes`; -1: not known here, or without ranks
    std::vector<std::string> notes;

    /// Returns nothing if the node's half is not known here.
    binding const* binding_of(rank_place const& place) const;
    /// Returns the number of used nodes whose half is not known here.
    int unknown_nodes() const;
    bool operator==(plan const&) const = default;
};

/// Holds the machines that are known here.
struct known_machines {
    std::optional<topology> every_node;             ///< if given, each node counts as one like it
    std::optional<topology> this_node;              ///< the machine that runs muster plan
    std::function<bool(node const&)> is_this_node;  ///< null: no node is this machine
};

/// Maps and binds the ranks. If each node is like one machine, the GPUs of a node are that machine's unless the scheduler gives
/// their number. Pure, except for `is_this_node`. Throws errc::placement.
plan make_plan(allocation given, placement_request const& wanted, known_machines const& known);

/// Returns the plan for people, and as JSON (schema "muster.plan/1"). Pure.
std::string plan_table(plan const& p);
std::string plan_json(plan const& p);

}  // namespace muster
