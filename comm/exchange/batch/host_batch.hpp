// A batch in host memory: packs its tensors, runs the collective, unpacks the results.
#pragma once

#include <cstddef>
#include <memory>

#include "comm/exchange/batch/batch_collectives.hpp"
#include "comm/exchange/batch/plan_batches.hpp"

namespace muster::detail {

/// Memory that grows and is kept, of the kind on which the communicator's collectives are fastest.
class scratch {
  public:
    explicit scratch(communicator& of) noexcept : of_(of) {}
    std::byte* get(std::size_t bytes);
    /// Never frees it, since other ranks may still write to it.
    void leak() noexcept;

  private:
    communicator& of_;
    comm_buffer memory_;
};

class host_batch final : public batch_collectives {
  public:
    /// `layout` is the batch's, if it is an allreduce. All arguments outlive the batch.
    host_batch(batch_parts const& with, batch_layout& layout, scratch& first, scratch& second);

    void start() { start_collective(); }
    /// Returns whether all results are in the tensors. Throws what the communicator throws.
    bool advance();

    /// The ranks have failed: never frees memory of this batch to which others may still write.
    void leak() noexcept;

  private:
    std::byte* first_scratch(std::size_t bytes) override { return first_.get(bytes); }
    std::byte* second_scratch(std::size_t bytes) override { return second_.get(bytes); }
    std::byte* give_memory(pending_request& unit, group_result* part, std::size_t bytes) override;
    void copy(void* to, void const* from, std::size_t bytes) override;
    void fill(tensor_view const& view) override;
    void start_allreduce() override;
    void start_uneven_reducescatter(tensor_view const& in, tensor_view const& out, element_range const& mine) override;

    void find_residuals();
    void pack();
    void pack_compressed();
    void unpack();
    void start_adasum(std::byte const* in, std::byte* out, std::size_t count);
    void combine_pieces();
    void trace(trace_kind kind, exchange_clock::time_point begin);

    batch_layout& layout_;
    scratch& first_;
    scratch& second_;
    std::byte* packed_ = nullptr;  ///< the fusion buffer, if there is one
    bool unpacks_ = false;         ///< results are in it
    tensor_view pieces_;           ///< of an uneven reducescatter: the elements that came from each rank
    std::unique_ptr<std::byte[]> pieces_memory_;
    tensor_view share_;  ///< … and this rank's share
};

}  // namespace muster::detail
