// A batch in device memory: puts its copies and its collective on a lane's stream.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/exchange/batch/batch_collectives.hpp"
#include "comm/exchange/batch/device_lane.hpp"
#include "comm/exchange/batch/device_mover.hpp"
#include "comm/exchange/batch/handed_batch.hpp"

namespace muster::detail {

/// As host_batch, but the device does the work: start() puts what precedes the collective and the collective on the lane,
/// hand_over() what follows, from when on other batches may be started behind it. The exchange's thread must never wait for the
/// device, which may wait for a rank that has failed: what asks the driver for memory is therefore done only while the device
/// works on no batch.
class device_batch final : public batch_collectives {
  public:
    /// `host`: a communicator of the same ranks for host memory, which Adasum goes through. All of it outlives the batch.
    device_batch(batch_parts const& with, device_lane& lane, communicator& host, device_movers& movers);

    /// Whether start() asks the driver for nothing: it repeats what was done before.
    bool repeats() const;
    void start();
    /// True once everything is on the device; never blocks (but for Adasum, in whose steps the other ranks are waited for).
    /// Throws what the communicator throws.
    bool hand_over();
    /// What is left of it after that.
    handed_batch take_handed() &&;

    /// As handed_batch::leak.
    void leak() noexcept;

  private:
    std::byte* first_scratch(std::size_t bytes) override { return lane_.first.get(bytes); }
    std::byte* second_scratch(std::size_t bytes) override { return lane_.second.get(bytes); }
    std::byte* give_memory(pending_request& unit, group_result* part, std::size_t bytes) override;
    void copy(void* to, void const* from, std::size_t bytes) override;
    void fill(tensor_view const& view) override;
    void start_allreduce() override;
    void start_uneven_reducescatter(tensor_view const& in, tensor_view const& out, element_range const& mine) override;

    bool feeds_back() const noexcept { return batch_.error_feedback && is_compressed(); }
    bool needs_no_buffer() const noexcept { return in_.data != nullptr && out_.data != nullptr; }
    std::byte* find_buffer() const noexcept;
    void lay_out();
    void find_gap_free(std::span<std::size_t const> counts, std::span<std::size_t const> offsets, std::size_t total);
    void plan_moves(std::byte* buffer, std::span<std::size_t const> counts, std::span<std::size_t const> offsets);
    tensor_view residual_of(fusion_item const& item) const;
    void make_room();
    void wait_for_programs();
    void start_fused_allreduce();
    void start_adasum();
    void finish_adasum();
    cuda::driver const& with() const noexcept { return lane_.on->with(); }

    device_lane& lane_;
    communicator& host_;
    device_movers& movers_;
    tensor_view in_, out_;               ///< what a fused allreduce reads and writes; null data: the fusion buffer
    device_move pack_, unpack_;          ///< with it
    std::vector<tensor_view> missing_;   ///< places in it of tensors that this rank has joined in
    tensor_view share_from_, share_to_;  ///< of an uneven reducescatter: this rank's part of the sum, and its place
    std::vector<std::vector<std::byte>> read_by_device_;  ///< neutral elements
    std::shared_ptr<cuda::unique_event const> staged_, finished_;
};

}  // namespace muster::detail
