// Collectives on an NCCL communicator that has come up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "comm/backend/collective_backend.hpp"
#include "comm/backend/processes/process_watch.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/nccl/library/nccl_comm.hpp"

namespace muster::nccl {

/// A backend's knowledge of its ranks.
struct world {
    int rank = 0;
    int size = 1;
    bool crowded = false;
    std::string speaker;  ///< "rank 1 of 4 on n2"
    duration deadline{0};
    std::vector<std::string> hosts;
    std::vector<process_name> processes;
};

/// A backend's objects on its device.
struct workspace {
    std::shared_ptr<cuda::device const> on;
    cuda::unique_stream stream;
    cuda::unique_memory scratch;  ///< barriers add it up
};

/// Throws cuda_error.
workspace make_workspace(std::shared_ptr<cuda::device const> on);

/// Returns the backend of these ranks. Its destruction is collective: see make_nccl_backend.
std::unique_ptr<collective_backend> make_collectives(world ranks, workspace space, nccl_comm comm);

}  // namespace muster::nccl
