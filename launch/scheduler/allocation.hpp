// The allocation: the nodes that a scheduler has given to this job.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

enum class scheduler_kind { slurm, pbs, cobalt, lsf, flux, hostfile, local };
std::string_view to_string(scheduler_kind kind) noexcept;

struct node {
    std::string name;           ///< the scheduler's spelling
    std::string address;        ///< the address to which ranks connect
    int slots = 1;              ///< the ranks it takes without GPUs
    std::optional<int> gpus;    ///< according to the scheduler; nothing: it does not say, and only the node itself can tell
    std::optional<int> cpus;    ///< its hardware threads that belong to the job; nothing: not known
    bool slots_named = false;   ///< the user has given the slots, so its GPUs need not be counted
    bool gpus_counted = false;  ///< its GPUs were counted on the node itself, since the scheduler does not count them
    std::string gpu_ids;        ///< its GPUs that belong to the job, as in CUDA_VISIBLE_DEVICES ("1,3"); empty: not known
    bool operator==(node const&) const = default;
};

struct allocation {
    scheduler_kind scheduler = scheduler_kind::local;
    std::string job_id;
    std::vector<node> nodes;
    std::optional<std::chrono::system_clock::time_point> ends_at;
    bool fixed = false;           ///< a scheduler owns it: never use more than it gave
    bool shares_nodes = false;    ///< other jobs may be on its nodes
    bool ends_with_node = false;  ///< the scheduler silently kills the job some time after it has lost a node
    int restarts = 0;             ///< how often the job was put back into the queue
    /// Variables of this process that came from another job, which submitted this one, with their right values; nothing: unset.
    std::vector<std::pair<std::string, std::optional<std::string>>> corrections = {};
    std::string narrowed_by = {};  ///< the option that has selected a part of a job: "-H"; empty: none has
    std::string cluster = {};      ///< Slurm's, whose clusters each number their jobs from 1; empty: not known
    bool operator==(allocation const&) const = default;
};

/// Returns the index of every node.
std::vector<int> all_nodes(allocation const& given);

/// Returns the names of its nodes as one short list, cut if it is long: "gpu[01-04]".
std::string list_nodes(allocation const& given);

/// Returns one line about it for people: "job 4242 (slurm): 4 nodes, 16 GPUs".
std::string describe(allocation const& given);

/// Says what it means that the number of GPUs of some nodes is not known, and what to do, once for all of them; "" if all are
/// known.
std::string explain_unknown_gpus(allocation const& given);

/// Returns only this node, with a slot for each of `cores` and the given number of GPUs.
allocation local_allocation(std::string const& host, int cores, int gpus);

}  // namespace muster
