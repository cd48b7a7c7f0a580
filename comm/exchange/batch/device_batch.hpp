// A batch in device memory: puts its copies and its collective on a lane's stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/cuda/gpu_access.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/exchange/batch/batch_collectives.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

// A device lane holds what a process set needs on this rank's GPU: communicator, stream, scratch memory.

/// Device memory that grows and is kept. It also keeps the smaller pieces it had before: freeing them would wait for the device.
class device_scratch {
  public:
    explicit device_scratch(std::shared_ptr<cuda::device const> on) noexcept : on_(std::move(on)) {}
    std::byte* get(std::size_t bytes);
    /// Returns what get() returns, if that needs no memory of the driver; else null.
    std::byte* find(std::size_t bytes) const noexcept;

  private:
    std::shared_ptr<cuda::device const> on_;
    std::vector<cuda::unique_memory> memory_;  // the last is the largest
    std::size_t bytes_ = 0;
};

/// A communicator for device memory, and a stream on which batches are packed, handed to it and unpacked, one after the other: so
/// they share their fusion buffers, and the device need not wait for the host in between. The exchange's thread only.
///
/// Every process set has its own lane: their collectives may come in different orders on different ranks, which NCCL allows as
/// long as the device has room for the kernels of all of them at once.
struct device_lane {
    /// `over` is for device memory of `gpu`. Throws cuda_error.
    device_lane(communicator over, std::shared_ptr<cuda::device const> gpu, std::shared_ptr<cuda::fusion_kernels const> with);

    std::shared_ptr<cuda::device const> on;
    communicator ranks;
    cuda::unique_stream stream;
    std::shared_ptr<cuda::fusion_kernels const> kernels;  ///< null without kernels: tensors are then copied one by one
    device_scratch first, second;
    cuda::unique_pinned staging;  ///< host memory for Adasum, of `staging_bytes`
    std::size_t staging_bytes = 0;

    cuda::stream_handle queue() const noexcept { return stream.get().handle; }
    void check(int code, char const* call) const { cuda::check(on->with(), code, call); }
};

/// Opens a lane. Collective over the ranks of `host`, blocking; `options` may name the backend. Returns null and sets `refusal`
/// if no rank could make it; throws if only some could.
std::unique_ptr<device_lane> open_lane(communicator& host, comm_options const& options, gpu_access& gpu, std::string& refusal);

// Moves of tensors into and out of a fusion buffer in device memory.

/// Tensors that go into or out of a fusion buffer: from[i], times `factor`, goes to to[i]; with error feedback each has a
/// residual.
struct device_move {
    std::vector<tensor_view> from, to;
    double factor = 1;
    std::vector<tensor_view> residuals{};
    bool operator==(device_move const&) const = default;
};

/// Moves tensors on a lane's stream. It is kept, since tensors mostly lie where they lay before. The lane outlives it.
class device_mover {
  public:
    /// Returns whether it moves the same as the last time, so that nothing is left to prepare.
    bool repeats(device_move const& what) const { return what.from.empty() || what == last_; }

    /// Prepares the move. Not while the device works on a batch: this can wait for the device. Without kernels it only moves
    /// equal types, with factor 1. Throws errc::unavailable, cuda_error.
    void prepare(device_lane& lane, device_move what);

    /// Puts what was prepared on the stream. Throws cuda_error.
    void move(device_lane& lane);

  private:
    device_move last_;
    std::optional<cuda::fusion_launch> launch_;
};

/// The movers of a batch.
struct device_movers {
    device_mover pack, unpack;
};

// A handed batch is one of which the device knows all: it remains to ask whether the device has finished.

/// A request that ends with a batch, and its place in the flight recorder.
struct ending_unit {
    pending_ptr what;  ///< null if this rank has joined
    std::uint64_t record = 0;
};

struct handed_batch {
    operation under_way;
    std::shared_ptr<cuda::unique_event const> finished;  ///< follows the results
    std::string label;
    exchange_kind kind = exchange_kind::allreduce;
    std::size_t bytes = 0;
    exchange_clock::time_point began;
    std::vector<std::vector<std::byte>> read_by_device;
    std::vector<ending_unit> ends;

    /// Returns whether the device has finished. Throws what the communicator throws.
    bool done(device_lane& lane);
    /// The ranks have failed: never frees memory to which the device may still write.
    void leak() noexcept;
};

/// Never frees memory to which the device may still write.
void keep_device_memory(pending_request& of) noexcept;

/// Returns whether the device has reached this event. Throws cuda_error.
bool has_passed(device_lane& lane, cuda::unique_event const& event);

/// The same as host_batch, but the device does the work: start() puts the collective and what precedes it on the lane,
/// hand_over() what follows; from then on other batches may start behind it. The exchange's thread must never wait for the
/// device, which may wait for a rank that has failed: so it asks the driver for memory only while the device works on no batch.
class device_batch final : public batch_collectives {
  public:
    /// `host`: a communicator of the same ranks for host memory, through which Adasum goes. All of it outlives the batch.
    device_batch(batch_parts const& with, device_lane& lane, communicator& host, device_movers& movers);

    /// Returns whether start() repeats an earlier batch, and so asks the driver for nothing.
    bool repeats() const;
    void start();
    /// Returns whether everything is on the device; never blocks (except for Adasum, whose steps wait for the other ranks).
    /// Throws what the communicator throws.
    bool hand_over();
    /// Takes the part that remains after hand_over().
    handed_batch take_handed() &&;

    /// See handed_batch::leak.
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
    device_move pack_, unpack_;          ///< … to and from it
    std::vector<tensor_view> missing_;   ///< places in it of tensors that this rank does not have, since it has joined
    tensor_view share_from_, share_to_;  ///< of an uneven reducescatter: this rank's part of the sum, and its place
    std::vector<std::vector<std::byte>> read_by_device_;  ///< neutral elements
    std::shared_ptr<cuda::unique_event const> staged_, finished_;
};

}  // namespace muster::detail
