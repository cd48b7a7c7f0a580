// The placement that the user requests (ranks, nodes, cores, GPUs), and the mapping of ranks to nodes that follows from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/scheduler/allocation.hpp"

namespace muster {

enum class bind_policy {
    share,   ///< each rank gets an equal part of the cores near its GPU, or of all cores
    core,    ///< each rank gets one core
    numa,    ///< each rank gets its whole NUMA node
    socket,  ///< each rank gets its whole package
    gpu,     ///< each rank gets all the cores nearest to its GPU, which ranks of other GPUs there may share
    none,    ///< no rank is bound
};
std::string_view to_string(bind_policy policy) noexcept;
/// Throws errc::usage naming the possible words.
bind_policy parse_bind_policy(std::string_view word);

enum class map_policy {
    slot,  ///< fill one node after the other
    node,  ///< one rank on each node in turn
};
std::string_view to_string(map_policy policy) noexcept;
/// Throws errc::usage naming the possible words.
map_policy parse_map_policy(std::string_view word);

/// Says which of the node's allocated GPUs a rank's program sees.
enum class gpu_visibility {
    all,        ///< all of them, in PCI order; LOCAL_RANK is the index of this rank's
    own,        ///< only its own: the device index is 0
    own_first,  ///< all, this rank's first: the device index is 0
};
std::string_view to_string(gpu_visibility seen) noexcept;
/// Throws errc::usage naming the possible words.
gpu_visibility parse_gpu_visibility(std::string_view word);

/// Holds the job's share of a node according to the scheduler. Nothing: it does not say.
struct node_part {
    bool may_be_part = false;  ///< other jobs may be on the node, and the scheduler does not say which resources are whose
    std::optional<int> gpus;
    std::optional<int> cpus;  ///< hardware threads
    std::string gpu_ids;      ///< "1,3": they replace those that variables of this process name; empty: it does not say
    bool operator==(node_part const&) const = default;
};

struct placement_request {
    std::optional<int> ranks;           ///< world size; without it every slot gets a rank
    std::optional<int> nodes;           ///< use this many of the allocation's nodes, the first ones
    std::optional<int> ranks_per_node;  ///< exactly this many on each used node
    map_policy map_by = map_policy::slot;
    std::optional<int> slots_per_node;  ///< replaces the node's own number: allows sharing
    int ranks_per_gpu = 1;              ///< above 1: ranks share GPUs, because the user asked for it
    bind_policy bind_to = bind_policy::share;
    std::optional<int> cpus_per_rank;  ///< cores of each rank
    gpu_visibility gpus_seen = gpu_visibility::all;
    bool smt = true;                    ///< false: one hardware thread of each core
    std::vector<std::string> cpu_map;   ///< by local rank: its hardware threads, from a site or the user ("24-31,56-63")
    std::vector<int> gpu_map;           ///< by local rank: which of the node's GPUs (place in PCI order); empty: in order
    std::vector<std::string> gpu_cpus;  ///< by the node's GPU: the hardware threads nearest to it, if a site knows better
    /// Hardware threads whose cores no rank gets ("0,8,16"), e.g. because a site keeps them for the system.
    std::string reserved_cpus;
    node_part share = {};  ///< set for each node (with_share)
    /// Ranks get the list of the machine's GPUs, even if only the scheduler knows them: the machine has more than those.
    bool lists_gpus = false;
    bool operator==(placement_request const&) const = default;
};

// A mapping of ranks to nodes: the launcher's half of the placement.

struct rank_place {
    int node = 0;  ///< index into the allocation's nodes
    int local_rank = 0;
    bool operator==(rank_place const&) const = default;
};

/// map_policy::slot numbers ranks node by node, in the allocation's order. map_policy::node numbers them in rounds, one rank on
/// each node that still has room, like mpirun's --map-by node.
struct mapping {
    std::vector<int> ranks_per_node;  ///< one entry for each node of the allocation; 0: not used
    map_policy order = map_policy::slot;
    std::string note;  ///< what the user should know about it ("4 ranks on 2 slots …"), or empty

    int world_size() const noexcept;
    int nodes_used() const noexcept;
    int rank_of(int node, int local_rank) const;
    rank_place place_of(int rank) const;
    std::vector<rank_place> places() const;  ///< those of all ranks, in order of rank; linear in their number
    bool operator==(mapping const&) const = default;
};

/// Places ranks on nodes. Pure and linear in their number.
/// - If the GPUs of the nodes are known and there are some, a node takes `ranks_per_gpu` ranks for each; else one for each slot.
/// `slots_per_node` replaces both. Nodes that take no ranks are left out. Without `ranks` all room is used.
/// - `ranks` fill one node after the other. With map_policy::node, or with `nodes` (this many of the first that take ranks), they
/// are dealt in rounds, so that all nodes are used alike. `ranks_per_node` puts exactly this many on each used node.
/// - More ranks than room is an error, with two exceptions: on only this machine and without GPUs, `ranks` may exceed the cores,
/// and the note says so; if the GPUs are not known, `ranks` and `ranks_per_node` may exceed the slots (unless a list of hosts
/// gives these), up to the hardware threads of a node if they are known.
/// - It is an error without `slots_per_node` if the GPUs of some nodes are known and those of others are not.
/// Throws errc::usage for values that contradict each other, errc::placement with the numbers and what to do.
mapping map_ranks(allocation const& given, placement_request const& wanted);

/// Returns whether the GPUs of only some nodes are known: ranks could not be counted.
bool some_tell_gpus(allocation const& given);

/// Returns whether only the nodes themselves can say how many ranks they take: several nodes, or another one than this, with GPUs
/// that nobody has counted and no requested number of ranks; or some with counted GPUs and some with uncounted ones.
bool must_ask_nodes(allocation const& given, placement_request const& wanted);

}  // namespace muster
