// The place of a process in a Slurm job step.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Holds what Slurm told a task of a step. Numbers that no variable told are absent.
struct slurm_step {
    std::string name;  ///< "slurm.JOB.STEP"
    std::string host;  ///< SLURMD_NODENAME, or empty
    int rank = 0;
    std::optional<int> tasks, local_rank, local_tasks, node_rank, nodes;
    std::string_view tasks_variable;  ///< which variable told `tasks`
    bool operator==(slurm_step const&) const = default;
};

/// Nothing outside of a step: in a batch script, an salloc shell or its interactive step SLURM_PROCID may be 0 and SLURM_NTASKS
/// 8, although that process is no rank of 8. Pure. Throws errc::parse on a variable of a step that does not parse.
std::optional<slurm_step> read_slurm_step(environment const& variables);

/// Counts from Slurm's run-length form: "4(x2),1" is 4 4 1. `origin` names the variable in errors. At most 2^20 nodes. Throws
/// parse_error with a caret under the fault.
std::vector<int> parse_tasks_per_node(std::string_view text, std::string_view origin = "SLURM_STEP_TASKS_PER_NODE");

}  // namespace muster
