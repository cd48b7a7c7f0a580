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
    std::string name;           ///< as the scheduler spells it
    std::string address;        ///< what ranks connect to
    int slots = 1;              ///< ranks it takes when there are no GPUs
    std::optional<int> gpus;    ///< as the scheduler says; nothing: it does not say, only the node itself can tell
    std::optional<int> cpus;    ///< hardware threads of it that belong to the job; nothing: not said
    bool slots_named = false;   ///< the user has named the slots: its GPUs need not be counted
    bool gpus_counted = false;  ///< its GPUs were counted on the node itself: the scheduler knows nothing of them
    std::string gpu_ids;  ///< which of its GPUs belong to the job, as CUDA_VISIBLE_DEVICES would say it ("1,3"); empty: not said
    bool operator==(node const&) const = default;
};

struct allocation {
    scheduler_kind scheduler = scheduler_kind::local;
    std::string job_id;
    std::vector<node> nodes;
    std::optional<std::chrono::system_clock::time_point> ends_at;
    bool fixed = false;           ///< a scheduler owns it: never use more than it gave
    bool shares_nodes = false;    ///< other jobs may be on its nodes
    bool ends_with_node = false;  ///< the scheduler kills the job some time after it has lost a node, without a word
    int restarts = 0;             ///< how often the job was put back into the queue
    /// Variables of this process that another job has left, which this one was submitted from: their right values; nothing: none.
    std::vector<std::pair<std::string, std::optional<std::string>>> corrections = {};
    std::string narrowed_by = {};  ///< the option that has taken only some of a job: "-H"; empty: all of it is here
    std::string cluster = {};      ///< of Slurm, whose clusters number their jobs from 1 each; empty: not known
    bool operator==(allocation const&) const = default;
};

/// The index of every node.
std::vector<int> all_nodes(allocation const& given);

/// The names of its nodes in one short list, cut where it is long: "gpu[01-04]".
std::string list_nodes(allocation const& given);

/// One line about it for people: "job 4242 (slurm): 4 nodes, 16 GPUs".
std::string describe(allocation const& given);

/// What it means that the number of GPUs of some nodes is not known, and what to do, once for all of them; "" where all are known.
std::string explain_unknown_gpus(allocation const& given);

/// This node alone, with a slot for each of `cores` and the given number of GPUs.
allocation local_allocation(std::string const& host, int cores, int gpus);

}  // namespace muster
