// Finds what is wrong with the nodes of an allocation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/preflight/probed_node.hpp"
#include "launch/wire/node_report.hpp"

namespace muster {

enum class severity { note, error };

/// One thing wrong with one node. An error makes it unfit for ranks.
struct node_finding {
    int node = 0;  ///< index among the nodes given
    severity how = severity::error;
    std::string what;    ///< "its /dev/shm has 4 KiB free"
    std::string advice;  ///< one thing to do
    bool operator==(node_finding const&) const = default;
};

/// What is asked of a node. Less than `least_…` is an error, less than `wanted_…` a note.
struct node_limits {
    std::string version;  ///< of muster, on every node
    std::uint64_t least_shm_bytes = 16u << 20;
    std::uint64_t wanted_shm_bytes = 256u << 20;
    std::uint64_t least_tmp_bytes = 16u << 20;
    std::uint64_t wanted_tmp_bytes = 256u << 20;
    double most_gpu_memory_used = 0.1;  ///< of a GPU's memory, before the ranks
    double most_clock_difference_s = 2;
};

/// Pure. In order of node, errors first.
std::vector<node_finding> find_faults(std::vector<probed_node> const& nodes, node_limits const& wanted);

/// The first node without an error, or -1.
int first_good(std::vector<probed_node> const& nodes, node_limits const& wanted);

bool is_bad(std::vector<node_finding> const& findings, int node) noexcept;

/// The findings for people, a line each, those that are the same on several nodes in one: "node2, node4: its /dev/shm …; free
/// some". Of one severity only; of many lines the first, and how many more there are.
std::vector<std::string> describe_findings(std::vector<node_finding> const& findings, std::vector<probed_node> const& nodes,
                                           severity which);

}  // namespace muster
