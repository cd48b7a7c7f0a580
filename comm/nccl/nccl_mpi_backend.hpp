// The backend over NCCL within nodes and MPI across them. Serves GPUs whose network MPI reaches faster than NCCL.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Serves, where it is asked for by name, worlds of several nodes with MPI, NCCL and a GPU for each rank. By name only: whether
/// MPI is the faster of the two across the nodes is a property of the machine (a network for which NCCL has no plugin, so that it
/// goes by TCP), which cannot be asked for, and where NCCL has a path to the network it is `nccl` that should be taken.
std::optional<std::string> nccl_mpi_unavailable(identity const& who, comm_options const& options);

/// Allreduces of device memory from comm_options::hierarchical_bytes on go in steps: reduced within the node by NCCL, the shares
/// across the nodes by MPI through pinned host memory, gathered within the node by NCCL; in chunks (node_chunk_bytes), so that
/// one is on the network while the next is reduced (chunked_allreduce_backend.hpp). Of S bytes 2 S (N-1)/N enter and leave each
/// of N nodes. One after the other, in the order of their start. The elements of a node's ranks are combined first, as NCCL
/// combines them, then those of the nodes as the mpi backend does: f16 and bf16 are rounded in between.
///
/// Smaller ones, all other collectives, and everything where the nodes have different numbers of ranks or one rank each (the log
/// says so), go flat over MPI through pinned host memory (host_staged_backend.hpp); so do process sets.
///
/// Streams as those of the nccl backend; since MPI is in between, communicator::progress(), or a wait, must be called for an
/// operation to go on, and operation::order() returns once the last step has been handed to the device. After a failure all
/// communicators of this process on NCCL are aborted (nccl_backend.hpp).
///
/// Collective, also over ranks that lack NCCL or a GPU: what one of them lacks is thrown on all (comm_error, naming them). Throws
/// what make_mpi_backend and make_nccl_backend throw.
std::unique_ptr<collective_backend> make_nccl_mpi_backend(identity const& who, comm_options const& options);

}  // namespace muster
