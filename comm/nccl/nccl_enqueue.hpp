// One collective as NCCL's calls.
#pragma once

#include <string_view>

#include "comm/backend/collective_backend.hpp"
#include "comm/nccl/library/nccl_library.hpp"
#include "comm/tensor/tensor.hpp"

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

// The plan by which NCCL does a reduction with its factors. Pure.

/// NCCL's name of a type.
type type_of(dtype element) noexcept;

/// What is done in turn: scale by our kernel, reduce (each element multiplied first if `scaled_sum`), scale by our kernel.
struct reduction_plan {
    double before = 1;  ///< by our kernel, into memory of its own or into `out`
    op how = op::sum;
    bool scaled_sum = false;  ///< a sum of elements multiplied by `factor`, by NCCL
    double factor = 1;
    double after = 1;  ///< by our kernel, in place
    bool needs_kernels() const noexcept { return before != 1 || after != 1; }
    bool operator==(reduction_plan const&) const = default;
};

/// NCCL itself multiplies the elements of sums and averages, in their type: good enough for f32 and f64, where the factors before
/// and after become one, and exact for f16 and bf16 by powers of two. A third is no number of either (in bf16 it would be off by
/// 0.2%), so any other factor of theirs goes through our kernels, in f32; a division by the number of ranks comes first then, so
/// that sums of f16 do not overflow. Minima, maxima and products are scaled by our kernels.
reduction_plan plan_reduction(reduction how, dtype element, scaling const& scale, int ranks) noexcept;

}  // namespace muster::nccl
