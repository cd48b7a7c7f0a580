// One node of the allocation, with what its probe reported.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/settings/run_context.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// One node of the allocation, as the launcher knows it.
struct probed_node {
    std::string name;     ///< the allocation's
    std::string address;  ///< the allocation's
    std::optional<node_report> report;
    std::string silence;        ///< why there is no report
    double clock_ahead_s = 0;   ///< its clock relative to the launcher's
    double clock_error_s = 0;   ///< the possible error of that
    std::string towards;        ///< the node to which it had to connect, where rank 0 would be; or empty
    std::string connect_fault;  ///< why it could not; empty: it could
    std::optional<int> gpus_expected;
    bool operator==(probed_node const&) const = default;
};

// Inspects nodes from the launcher, by a probe on each.

/// Returns which of the nodes would get rank 0, as far as is known; -1: none.
using choose_first = std::function<int(std::vector<probed_node> const& nodes)>;

/// Starts a probe on each of `nodes` (indices into the allocation's), all at once through the engine that the ranks would have,
/// and returns what they report, in the same order. If the engine starts only some or none, the missing ones are tried one by
/// one, so that a single dead node does not hide the others. Nodes that do not answer within some seconds have no report, but the
/// engine's output. Then all that answered connect to the node that `first` chooses. `run.options.command` may be empty. Throws
/// errc::unavailable if no engine is usable, program_error if it cannot start.
std::vector<probed_node> probe_nodes(run_plan const& run, std::vector<int> const& nodes, choose_first const& first);

// Finds what is wrong with the nodes of an allocation.

enum class severity { note, error };

/// One thing wrong with one node. An error makes it unfit for ranks.
struct node_finding {
    int node = 0;  ///< index among the given nodes
    severity how = severity::error;
    std::string what;    ///< "its /dev/shm has 4 KiB free"
    std::string advice;  ///< one thing to do
    bool operator==(node_finding const&) const = default;
};

/// Holds what is required of a node. Less than `least_…` is an error, less than `wanted_…` a note.
struct node_limits {
    std::string version;  ///< muster's, on every node
    std::uint64_t least_shm_bytes = 16u << 20;
    std::uint64_t wanted_shm_bytes = 256u << 20;
    std::uint64_t least_tmp_bytes = 16u << 20;
    std::uint64_t wanted_tmp_bytes = 256u << 20;
    double most_gpu_memory_used = 0.1;  ///< part of a GPU's memory, before the ranks
    double most_clock_difference_s = 2;
};

/// Returns the findings in order of node, errors first. Pure.
std::vector<node_finding> find_faults(std::vector<probed_node> const& nodes, node_limits const& wanted);

/// Returns the first node without an error, or -1.
int first_good(std::vector<probed_node> const& nodes, node_limits const& wanted);

bool is_bad(std::vector<node_finding> const& findings, int node) noexcept;

/// Returns the findings for people, a line each, with equal ones of several nodes in one: "node2, node4: its /dev/shm …; free
/// some". Only those of one severity; the first of many lines, and the number of the others.
std::vector<std::string> describe_findings(std::vector<node_finding> const& findings, std::vector<probed_node> const& nodes,
                                           severity which);

}  // namespace muster
