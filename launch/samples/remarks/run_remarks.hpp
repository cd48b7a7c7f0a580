// Remarks on a run at its end: who kept the others waiting, and what it made of its GPUs and its memory.
#pragma once

#include <string>
#include <vector>

#include "launch/samples/run_samples.hpp"

namespace muster {

struct run_remark {
    std::string
        text;  ///< "rank 5 on node3 kept the others waiting 14 % of the time: its GPU ran at 1005 of 1980 MHz: heat (hardware)"
    std::string host;     ///< the node that is at fault, for later runs; empty: no node is
    std::string of_host;  ///< what follows that node's name: "had rank 5, which kept the others waiting 14 % of the time: …"
    bool operator==(run_remark const&) const = default;
};

/// A run shows at most this many.
inline constexpr std::size_t most_remarks = 3;

/// Returns the most important ones first; none for a healthy or short run. `last` are the run's last samples, with the sums since it
/// began. The thresholds are in the .cpp, and in oddities.cpp. Pure.
std::vector<run_remark> remarks_on(run_samples const& last);

}  // namespace muster
