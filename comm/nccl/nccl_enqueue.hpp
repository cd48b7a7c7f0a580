// One collective as calls of NCCL.
#pragma once

#include <string_view>

#include "comm/backend/collective_backend.hpp"
#include "comm/nccl/library/nccl_library.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::nccl {

/// The place where a collective is put.
struct enqueue_place {
    library const& with;
    comm_handle comm = nullptr;
    stream_handle stream = nullptr;
    int rank = 0;
    int size = 1;
    void* scratch = nullptr;  ///< 4 bytes of device memory for barriers
};

/// The code that NCCL returned, and the call that returned it.
struct enqueue_result {
    int code = success;  ///< success, in_progress, or an error
    std::string_view call = "";
};

/// Puts `what` on the stream: as one of NCCL's collectives, or as a group of sends, receives, broadcasts or reductions to one
/// rank if NCCL has none (alltoall, exchange, shares that differ). `what.in` may differ from the program's (scaled first); `how`
/// is NCCL's operation for allreduce and reducescatter. A group is closed whatever fails within it.
enqueue_result enqueue(enqueue_place const& at, collective const& what, op how);

// A plan of how NCCL does a reduction with its factors. Pure.

/// Returns NCCL's name of a type.
type type_of(dtype element) noexcept;

/// The steps of a reduction: muster's kernel scales, NCCL reduces (with `scaled_sum` it multiplies each element first), muster's
/// kernel scales.
struct reduction_plan {
    double before = 1;  ///< muster's kernel writes to separate memory or to `out`
    op how = op::sum;
    bool scaled_sum = false;  ///< NCCL sums elements multiplied by `factor`
    double factor = 1;
    double after = 1;  ///< muster's kernel works in place
    bool needs_kernels() const noexcept { return before != 1 || after != 1; }
    bool operator==(reduction_plan const&) const = default;
};

/// NCCL itself multiplies the elements of sums and averages, in their type: this is good enough for f32 and f64, where the
/// factors before and after become one, and exact for f16 and bf16 with powers of two. Neither type holds a third (bf16 is off by
/// 0.2%), so muster's kernels apply all their other factors, in f32; a division by the number of ranks then comes first, so that
/// sums of f16 do not overflow. The kernels also scale minima, maxima and products.
reduction_plan plan_reduction(reduction how, dtype element, scaling const& scale, int ranks) noexcept;

}  // namespace muster::nccl
