// A plan of batches groups tensors that one collective reduces together.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/request/exchange_request.hpp"

namespace muster {

/// Tensor `tensor` of agreement `unit`.
struct fusion_item {
    std::size_t unit = 0;
    std::size_t tensor = 0;
    bool operator==(fusion_item const&) const = default;
};

/// The work of one collective: any number of allreduced tensors of one type, reduction, scaling, compression and memory, or one
/// agreement of any other kind.
struct fused_batch {
    exchange_kind kind = exchange_kind::allreduce;
    reduction how = reduction::sum;
    scaling scale{};
    compression wire = compression::none;  ///< how f32 elements are sent
    bool error_feedback = false;
    dtype type = dtype::f32;
    memory_kind where = memory_kind::host;
    std::vector<fusion_item> items;
    std::size_t bytes = 0;  ///< of all tensors, uncompressed
    bool operator==(fused_batch const&) const = default;
};

/// Returns batches in the order of their first agreement, each with tensors in the order of their places in the agreements, so
/// that they lie gap-free if they do so at all. Pure: the same on all ranks. A batch holds at most `fusion_bytes`, but at least
/// one tensor. A tensor, or stretch of tensors without a gap, of 256 KiB or more is gathered with no others: over shm, with 2 and
/// 4 ranks on 2 cores, ResNet-50's gradients then take half the time (measured); but compressed tensors are always copied. In
/// device memory the limit is 4 MiB. Tensors of Adasum are not fused. Agreements with a fault are left out.
std::vector<fused_batch> plan_batches(std::span<std::shared_ptr<agreement const> const> ready, std::size_t fusion_bytes);

}  // namespace muster

// A batch layout finds where the tensors of a batch lie in this rank's memory.

namespace muster::detail {

// Neutral elements: values that a reduction leaves unchanged.

/// Writes `count` of them to host memory: 0 for a sum, 1 for a product, the largest value for a minimum, …
void fill_neutral(dtype type, reduction how, void* to, std::size_t count);

/// Elements that are contiguous in the input, in the output and in the fusion buffer.
struct memory_run {
    std::byte const* in = nullptr;  ///< null: neutral elements, since this rank has joined
    std::byte* out = nullptr;       ///< null: this rank does not want them
    std::size_t bytes = 0;
    float* residual = nullptr;  ///< with error feedback: one for each element
};

/// The runs of a batch in its order, and whether they are gap-free as a whole.
struct batch_layout {
    std::vector<memory_run> runs;
    std::byte const* whole_in = nullptr;  ///< all inputs, if each begins where the one before ends; else null
    std::byte* whole_out = nullptr;       ///< the same of the outputs
};

/// Lays out a batch; `units[i]` is this rank's request for `agreed[i]`, or null. With `apart` each tensor that has elements is a
/// separate run. Writes the result to `into`, whose memory is used again. Pure otherwise.
void lay_out(fused_batch const& batch, std::span<std::shared_ptr<agreement const> const> agreed,
             std::span<pending_ptr const> units, bool apart, batch_layout& into);

}  // namespace muster::detail
