// A batch layout finds where the tensors of a batch lie in this rank's memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/batch/plan_batches.hpp"
#include "comm/exchange/request/exchange_request.hpp"

namespace muster::detail {

// Neutral elements: values that a reduction leaves unchanged.

/// Writes `count` of them to host memory: 0 for a sum, 1 for a product, the largest value for a minimum, …
void fill_neutral(dtype type, reduction how, void* to, std::size_t count);

/// Elements that lie one after the other in the input, in the output and in the fusion buffer.
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

/// `units[i]` is this rank's request for `agreed[i]`, or null. With `apart` each tensor that has elements is a separate run.
/// Writes the result to `into`, whose memory is used again. Pure otherwise.
void lay_out(fused_batch const& batch, std::span<std::shared_ptr<agreement const> const> agreed,
             std::span<pending_ptr const> units, bool apart, batch_layout& into);

}  // namespace muster::detail
