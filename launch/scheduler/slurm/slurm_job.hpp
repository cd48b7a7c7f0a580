// Reads what `scontrol` prints: about a job (-d -o show job), and of the configuration (show config).
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
    bool found = false;                               ///< the answer names the job that was asked for
    bool asked_gpus = false;                          ///< JOB_GRES names GPUs
    bool shares_gpus = false;                         ///< JOB_GRES names parts of GPUs (shard, mps)
    std::map<std::string, int> gpus;                  ///< by node; 0 where the answer names the node and no GPU of it
    std::map<std::string, std::vector<int>> gpu_ids;  ///< by node, where each of its GPUs has a number (IDX)
    std::optional<std::chrono::system_clock::time_point> ends_at;  ///< of the component that ends first
    std::optional<int> restarts;                                   ///< how often it was put back into the queue
    std::optional<int> tasks;                                      ///< of the job's own record
    std::optional<int> cpus_per_task;  ///< of the job's own record; nothing: not said, or not a number (N/A)
    std::string ended_as;              ///< of the job's own record, "COMPLETED"; empty: it has not ended
    std::string nodes;                 ///< of the job's own record, "n[1-3]": those that it has now; empty: not said
    std::string excluded;              ///< of the job's own record, "n[1-3]": those that it is not to run on; empty: none
    std::string array_job;             ///< number of the array that it is a task of; empty: of none
    bool operator==(slurm_job const&) const = default;
};

/// Reads the records of job `id` and of the other components of its heterogeneous job, if it is one; GPUs of a node that is in
/// several components are added up. Records of other jobs (other tasks of an array) are passed over. Times are taken as seconds
/// since 1970 (SLURM_TIME_FORMAT=%s) or as local time ("2026-11-21T08:29:00"); "Unknown" is no time. Pure, except for the time zone.
/// Anything unknown is passed over: it reports nothing of nodes whose list or GPUs it does not understand. Throws errc::parse where it
/// names more nodes than a job can have.
slurm_job parse_scontrol_job(std::string_view text, std::string_view id);

/// How many GPUs a Slurm list of resources names: "gpu:4(IDX:0-3)", "gpu:a100:2(IDX:0,2),gpu:h100:1,nic:1". With `only_gpus` the
/// list is of GPUs alone, as SLURM_GPUS_PER_NODE: "4", "a100:2,h100:1". Throws parse_error.
int count_gres_gpus(std::string_view text, std::string_view origin, bool only_gpus = false);

/// The numbers of the GPUs in such a list, in rising order: 0, 2, 3 of "gpu:a100:2(IDX:0,2),gpu:h100:1(IDX:3)". Empty where it
/// has none or damaged ones.
std::vector<int> gres_gpu_ids(std::string_view text);

/// Whether `scontrol show config` says that this Slurm knows GPUs at all (GresTypes).
bool knows_gpus(std::string_view config);

/// Whether it says that anything binds tasks (TaskPlugin); true where it does not say.
bool binds_tasks(std::string_view config);

/// The name that it gives the cluster (ClusterName); "" where it gives none.
std::string slurm_cluster_name(std::string_view config);

/// Where it says that users are known by munge (AuthType): the socket of munged that it names (AuthInfo), or "" for munge's own.
std::optional<std::string> munge_socket(std::string_view config);

// The components of a heterogeneous Slurm job, as this process' variables tell them. A job submitted from within another one has
// that one's SLURM_HET_* too: they count only where they are of the job that SLURM_JOB_ID names.

/// The variables of a job, or of one component of a heterogeneous job: `suffix` is "" or "_HET_GROUP_1". Keeps a reference.
struct slurm_component {
    environment const& variables;
    std::string suffix;

    std::string name(std::string_view base) const;
    std::optional<std::string> get(std::string_view base) const;
};

/// How many components this very job has: 1 where it is not heterogeneous, whatever another job has left in `variables`. Pure.
/// The names are those of Slurm's manual of sbatch, "OUTPUT ENVIRONMENT VARIABLES".
int count_slurm_components(environment const& variables);

/// Those of this job, in order; of a job that is not heterogeneous the job itself. `variables` must outlive the result.
std::vector<slurm_component> slurm_components(environment const& variables);

// Finds the variables in a Slurm job that are another job's: sbatch and salloc pass on what the job that they are called in has.

/// Names with their right values, or nothing where this job has no such variable. `job` is scontrol's record of SLURM_JOB_ID; where it
/// was not found only the components are judged. Variables of GPUs are another job's where Slurm has set them and this job has none on
/// this node (SLURMD_NODENAME); where it has some, slurmd has set them anew. Pure.
std::vector<std::pair<std::string, std::optional<std::string>>> slurm_corrections(environment const& variables,
                                                                                  slurm_job const& job, bool step);

}  // namespace muster
