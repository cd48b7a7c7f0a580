// The plan by which NCCL does a reduction with its factors. Pure.
#pragma once

#include "comm/nccl/library/nccl_library.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::nccl {

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
