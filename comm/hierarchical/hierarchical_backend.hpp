// The backend for several nodes. It reduces within each node first, so that less travels between nodes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Says why this backend cannot serve a world; nothing for worlds of several nodes, at least one with several ranks, that mpi or tcp
/// joins. The same on all ranks.
std::optional<std::string> hierarchical_unavailable(identity const& who, comm_options const& options);

/// Allreduces of at least comm_options::hierarchical_bytes go in three steps: a reducescatter within the node, an allreduce of each share with the ranks
/// of the same local place on the other nodes, an allgather within the node. Of S bytes 2 S (N-1)/N enter and leave each of N nodes. Across nodes it uses
/// mpi, or tcp if there is no MPI or addresses are given; within the node shm if that serves, else the backend across. The elements of a node's ranks are
/// combined first, in their order, then those of the nodes: f16 and bf16 are rounded in between. All other collectives, and all if the nodes have
/// different numbers of ranks, go flat over the backend across; the log says so. Process sets are flat.
///
/// Tensors in device memory go to nccl instead, which finds out by itself which ranks share a node, and builds its rings and
/// trees within the nodes (NVLink, PCIe) and across them (one path for each network card). Separate steps with NCCL within the
/// nodes and across them would take several NCCL communicators, whose kernels would start in an order that depends on how fast
/// the network of each rank is; NCCL demands the same order on all ranks of a device ("Using multiple NCCL communicators
/// concurrently", NCCL user guide), and can wait without end otherwise.
///
/// Nodes are distinguished by the identities' node ranks, not by host names, so a test may pretend several nodes on one machine.
/// Collective; throws as the mpi and tcp backends do.
std::unique_ptr<collective_backend> make_hierarchical_backend(identity const& who, comm_options const& options);

// The steps of a reduction over several nodes: within the node, across the nodes, within the node.

// The groups of ranks, on a node and across nodes, among which a reduction over several nodes goes.

/// The place of a rank, from its identity. Sent among ranks as bytes.
struct node_place {
    int node_rank = 0;
    int local_rank = 0;
};

/// The groups that a rank belongs to, in ranks of the world.
struct node_groups {
    std::vector<int> local;   ///< the ranks of its node, by their local ranks
    std::vector<int> across;  ///< the ranks with the same local place on every node, by their nodes
    int local_place = 0;      ///< its index in `local`
    int node_place = 0;       ///< its index in `across`
    std::string refusal;      ///< the reason why steps are of no use, with the rest empty, the same on all ranks; else ""
};

/// Forms the groups of `rank`, given the `places` of every rank. Refuses one node, one rank on each node, different numbers of
/// ranks on the nodes, two ranks in one place. Pure.
node_groups group_by_node(std::span<node_place const> places, int rank);

/// Returns this rank's identity among those of its node, as a separate world. `purpose` distinguishes two such worlds. Pure.
identity identity_on_node(identity const& who, node_groups const& groups, std::string_view purpose);

/// The steps of one allreduce: a reducescatter on the node, by which this rank has its share of the node's result; an allreduce
/// of the shares across the nodes; an allgather on the node. f16 is averaged in both reductions, to keep its sums below 65,504;
/// other averages are sums, divided once by finish(), which rounds less. Pure.
class node_reduction {
  public:
    /// `groups` has no refusal and outlives this.
    node_reduction(node_groups const& groups, collective const& allreduce) noexcept : groups_(groups), whole_(allreduce) {}

    /// Returns this rank's share of the output.
    tensor_view share() const noexcept { return part_of(whole_.out, range_of(groups_.local_place)); }

    collective scatter() const;
    /// Works in place on `share`: share(), or a copy of it in other memory.
    collective across(tensor_view const& share) const;
    collective gather() const;

    /// Does the rest for a reduced share in host memory: the division, and the factor that comes after.
    void finish(tensor_view const& share) const noexcept;

  private:
    element_range range_of(int place) const noexcept {
        return share_of(whole_.out.count, static_cast<int>(groups_.local.size()), place);
    }
    bool divides_early() const noexcept { return whole_.how == reduction::average && whole_.in.type == dtype::f16; }
    reduction step() const noexcept { return whole_.how == reduction::average && !divides_early() ? reduction::sum : whole_.how; }

    node_groups const& groups_;
    collective const& whole_;
};

}  // namespace muster
