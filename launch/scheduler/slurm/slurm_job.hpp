// Reads what `scontrol` prints about a job (-d -o show job) and about the configuration (show config).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"

namespace muster {

struct slurm_job {
    bool found = false;                                            ///< the answer names the job that was asked for
    bool asked_gpus = false;                                       ///< JOB_GRES names GPUs
    bool shares_gpus = false;                                      ///< JOB_GRES names parts of GPUs (shard, mps)
    std::map<std::string, int> gpus;                               ///< by node; 0 for a node that the answer names without GPUs
    std::map<std::string, std::vector<int>> gpu_ids;               ///< by node, if each of its GPUs has a number (IDX)
    std::optional<std::chrono::system_clock::time_point> ends_at;  ///< the end of the component that ends first
    std::optional<int> restarts;                                   ///< how often it was put back into the queue
    std::optional<int> tasks;                                      ///< from the record of the job itself
    std::optional<int> cpus_per_task;                              ///< from that record; nothing: missing, or not a number (N/A)
    std::string ended_as;                                          ///< from that record, "COMPLETED"; empty: it has not ended
    std::string nodes;      ///< from that record, "n[1-3]": its present nodes; empty: not known
    std::string excluded;   ///< from that record, "n[1-3]": nodes on which it must not run; or empty
    std::string array_job;  ///< the number of its array, if it is a task of one; or empty
    bool operator==(slurm_job const&) const = default;
};

/// Reads the records of job `id` and of the other components of its heterogeneous job, if it is one; adds up the GPUs of a node
/// in several components. Skips records of other jobs (other tasks of an array). Times are seconds since 1970
/// (SLURM_TIME_FORMAT=%s) or local time ("2026-11-21T08:29:00"); "Unknown" is no time. Pure, except for the time zone. Skips
/// anything unknown: it reports no nodes whose list or GPUs it does not understand. Throws errc::parse for more nodes than a job
/// can have.
slurm_job parse_scontrol_job(std::string_view text, std::string_view id);

/// Returns how many GPUs a Slurm list of resources names: "gpu:4(IDX:0-3)", "gpu:a100:2(IDX:0,2),gpu:h100:1,nic:1". With
/// `only_gpus` the list contains only GPUs, like SLURM_GPUS_PER_NODE: "4", "a100:2,h100:1". Throws parse_error.
int count_gres_gpus(std::string_view text, std::string_view origin, bool only_gpus = false);

/// Returns the numbers of the GPUs in such a list, in rising order: 0, 2, 3 for "gpu:a100:2(IDX:0,2),gpu:h100:1(IDX:3)". Returns
/// an empty list if they are missing or damaged.
std::vector<int> gres_gpu_ids(std::string_view text);

/// Returns whether this Slurm counts GPUs at all, according to `scontrol show config` (GresTypes).
bool knows_gpus(std::string_view config);

/// Returns whether anything binds tasks according to it (TaskPlugin); true if it does not say.
bool binds_tasks(std::string_view config);

/// Returns the cluster's name in it (ClusterName); "" if it has none.
std::string slurm_cluster_name(std::string_view config);

/// Returns munged's socket (AuthInfo), or "" for munge's default, if users are identified by munge (AuthType); otherwise nothing.
std::optional<std::string> munge_socket(std::string_view config);

// The components of a heterogeneous Slurm job, from this process' variables. A job submitted within another one has that one's
// SLURM_HET_*, too: they count only if they belong to the job in SLURM_JOB_ID.

/// Holds the variables of a job, or of one component of a heterogeneous job: `suffix` is "" or "_HET_GROUP_1". Keeps a reference.
struct slurm_component {
    environment const& variables;
    std::string suffix;

    std::string name(std::string_view base) const;
    std::optional<std::string> get(std::string_view base) const;
};

/// Returns how many components this job has: 1 if it is not heterogeneous, whatever another job has left in `variables`. Pure.
/// The names are from sbatch's manual, "OUTPUT ENVIRONMENT VARIABLES".
int count_slurm_components(environment const& variables);

/// Returns this job's components, in order, or the job itself if it is not heterogeneous. `variables` must outlive the result.
std::vector<slurm_component> slurm_components(environment const& variables);

// Finds the variables in a Slurm job that belong to another job: sbatch and salloc pass on those of the job that calls them.

/// Returns names with their right values, or nothing for a variable that this job does not have. `job` is scontrol's record of
/// SLURM_JOB_ID; if it was not found, only the components are checked. Variables of GPUs belong to another job if Slurm has set
/// them and this job has no GPUs on this node (SLURMD_NODENAME); if it has some, slurmd has set them. Pure.
std::vector<std::pair<std::string, std::optional<std::string>>> slurm_corrections(environment const& variables,
                                                                                  slurm_job const& job, bool step);

}  // namespace muster
