// The backend for several nodes. Reduces within each node first, so that less travels between nodes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Serves worlds of several nodes, at least one of which has several ranks, where mpi or tcp joins them. The same answer on all ranks.
std::optional<std::string> hierarchical_unavailable(identity const& who, comm_options const& options);

/// Allreduces from comm_options::hierarchical_bytes on go in three steps: a reducescatter within the node, an allreduce of each
/// share with the ranks of the same local place on the other nodes, an allgather within the node. Of S bytes 2 S (N-1)/N enter
/// and leave each of N nodes. Across nodes by mpi, or by tcp where there is no MPI or addresses are given; within the node by shm where that serves, else
/// as across. The elements of a
/// node's ranks are combined first, in their order, then those of the nodes: f16 and bf16 are rounded in between. Everything
/// else, and everything where the nodes have different numbers of ranks, goes flat over that; the log says so. Process sets are
/// flat.
///
/// Tensors in device memory go to nccl instead, which finds out by itself which ranks share a node, and builds its rings
/// and trees within the nodes (NVLink, PCIe) and across them (one path for each network card). Steps of our own with NCCL within
/// the nodes and across them would take several communicators of NCCL's, whose kernels would start in an order that depends on
/// how fast the network of each rank is; NCCL demands the same order on all ranks of a device ("Using multiple NCCL communicators
/// concurrently", NCCL user guide), and can wait without end otherwise. With NCCL within the nodes and MPI across them, one
/// communicator in a fixed order does: that is nccl_mpi (nccl/nccl_mpi_backend.hpp), for networks that MPI serves better.
///
/// Nodes are distinguished by the identities' node ranks, not by host names: a test may so pretend several nodes on one machine.
/// Collective; throws as the mpi and tcp backends do.
std::unique_ptr<collective_backend> make_hierarchical_backend(identity const& who, comm_options const& options);

}  // namespace muster
