// What a scheduler has given to this job.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

enum class scheduler_kind { slurm, pbs, cobalt, lsf, flux, hostfile, local };
std::string_view to_string(scheduler_kind kind) noexcept;

struct node {
    std::string name;     ///< as the scheduler spells it
    std::string address;  ///< what ranks connect to
    int slots = 1;        ///< ranks it takes when there are no GPUs
    std::optional<int> gpus;
    bool operator==(node const&) const = default;
};

struct allocation {
    scheduler_kind scheduler = scheduler_kind::local;
    std::string job_id;
    std::vector<node> nodes;
    std::optional<std::chrono::system_clock::time_point> ends_at;
    bool fixed = false;  ///< a scheduler owns it: never use more than it gave
    bool operator==(allocation const&) const = default;
};

/// This node alone, with a slot for each of `cores` and the given number of GPUs.
allocation local_allocation(std::string const& host, int cores, int gpus);

/// Why this process, inside a scheduler's job of several nodes, cannot run on this node alone; nothing if the job has one node or
/// there is none. Reads SLURM_JOB_NUM_NODES, PBS_NODEFILE and COBALT_NODEFILE.
std::optional<std::string> several_nodes(environment const& variables);

}  // namespace muster
