// One collective as NCCL's calls.
#pragma once

#include <string_view>

#include "comm/backend/collective_backend.hpp"
#include "comm/nccl/library/nccl_library.hpp"

namespace muster::nccl {

/// Where a collective is put.
struct enqueue_place {
    library const& with;
    comm_handle comm = nullptr;
    stream_handle stream = nullptr;
    int rank = 0;
    int size = 1;
    void* scratch = nullptr;  ///< 4 bytes of device memory for barriers
};

/// The code that NCCL returned, and from which call.
struct enqueue_result {
    int code = success;  ///< success, in_progress, or an error
    std::string_view call = "";
};

/// Puts `what` on the stream by NCCL: its own collectives, or a group of sends, receives, broadcasts or reductions to one where
/// it has none (alltoall, exchange, shares that differ). `what.in` may differ from what the program gave (scaled first); `how` is
/// NCCL's operation for allreduce and reducescatter. A group is closed whatever fails within.
enqueue_result enqueue(enqueue_place const& at, collective const& what, op how);

}  // namespace muster::nccl
