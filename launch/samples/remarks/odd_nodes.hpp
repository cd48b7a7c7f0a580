// The nodes that were at fault in this user's runs, remembered for later ones.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// A node that was lost, had a faulty or slow GPU, or kept a run waiting.
struct odd_node {
    std::string host;     ///< short name
    std::string cluster;  ///< names of nodes are those of one cluster; empty: not known
    std::string job;      ///< the scheduler's number; empty: none
    std::string reason;   ///< follows the node's name: "had rank 5, which kept the others waiting 14 % of the time"
    std::time_t at = 0;   ///< the run's end
    bool operator==(odd_node const&) const = default;
};

inline constexpr std::time_t odd_for_s = 14 * 24 * 3600;  ///< nodes are mended, or taken out, meanwhile
inline constexpr std::size_t most_odd_nodes = 200;

/// Returns the file's text, a JSON object a line, and what can be read of any text: the newest most_odd_nodes of those not older than odd_for_s. Pure.
std::string odd_nodes_text(std::vector<odd_node> const& nodes);
std::vector<odd_node> parse_odd_nodes(std::string_view text, std::time_t now);

/// Adds nodes to $XDG_STATE_HOME (or ~/.local/state) /muster/odd-nodes. Without such a folder, or where it cannot be written, they are forgotten. Of two
/// runs that end at the same moment one may overwrite what the other adds.
void remember_odd_nodes(environment const& variables, std::vector<odd_node> const& nodes) noexcept;

/// Returns those of this cluster, the newest first, each node once. None if the file may have been written by others.
std::vector<odd_node> recall_odd_nodes(environment const& variables, std::string_view cluster, std::time_t now) noexcept;

/// Returns what follows its name: "kept the others waiting 14 % of the time in job 4711, 20 h ago". Pure.
std::string describe(odd_node const& node, std::time_t now);

}  // namespace muster
