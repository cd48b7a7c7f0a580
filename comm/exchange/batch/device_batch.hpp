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

/// Device memory that grows and is kept. What it was before it grew stays as long: freeing it would wait for the device.
class device_scratch {
  public:
    explicit device_scratch(std::shared_ptr<cuda::device const> on) noexcept : on_(std::move(on)) {}
    std::byte* get(std::size_t bytes);
    /// What get() gives without asking the driver for more; or null.
    std::byte* find(std::size_t bytes) const noexcept;

  private:
    std::shared_ptr<cuda::device const> on_;
    std::vector<cuda::unique_memory> memory_;  // the last is the largest
    std::size_t bytes_ = 0;
};

/// A communicator for device memory, and a stream on which batches are packed, handed to it and unpacked, one after the other: so
/// they share their fusion buffers, and the device need not wait for the host in between. The exchange's thread only.
///
/// Every process set has its own lane: their collectives may come in different orders on different
/// ranks, which NCCL bears as long as the device has room for the kernels of all of them at once.
struct device_lane {
    /// `over`: for device memory of `gpu`. Throws cuda_error.
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

/// Collective over the ranks of `host`, blocking; `options` may name the backend. Null where no rank could make it, `refusal`
/// saying why; throws where some could.
std::unique_ptr<device_lane> open_lane(communicator& host, comm_options const& options, gpu_access& gpu, std::string& refusal);

// Moves of tensors into and out of a fusion buffer in device memory.

/// Tensors that go into a fusion buffer, or out of it: from[i] to to[i], times `factor`; with error feedback there is a residual
/// for each.
struct device_move {
    std::vector<tensor_view> from, to;
    double factor = 1;
    std::vector<tensor_view> residuals{};
    bool operator==(device_move const&) const = default;
};

/// Moves tensors on a lane's stream; kept, since tensors mostly lie where they lay before. The lane outlives it.
class device_mover {
  public:
    /// It is what was moved the last time: nothing is left to be prepared.
    bool repeats(device_move const& what) const { return what.from.empty() || what == last_; }

    /// Makes what is needed for it. Not while the device works on a batch: this can wait for the device. Without kernels only
    /// types that are the same, by a factor of 1. Throws errc::unavailable, cuda_error.
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

// A batch of which the device knows all: the rest is to ask whether the device has finished.

/// A request that ends with a batch, and its place in the flight recorder.
struct ending_unit {
    pending_ptr what;  ///< null where this rank has joined
    std::uint64_t record = 0;
};

struct handed_batch {
    operation under_way;
    std::shared_ptr<cuda::unique_event const> finished;  ///< behind the results
    std::string label;
    exchange_kind kind = exchange_kind::allreduce;
    std::size_t bytes = 0;
    exchange_clock::time_point began;
    std::vector<std::vector<std::byte>> read_by_device;
    std::vector<ending_unit> ends;

    /// True once the device has finished. Throws what the communicator throws.
    bool done(device_lane& lane);
    /// The ranks have failed: memory that the device may still write to is never freed.
    void leak() noexcept;
};

/// Memory that the device may still write to is never freed.
void keep_device_memory(pending_request& of) noexcept;

/// Whether the device has come to this event. Throws cuda_error.
bool has_passed(device_lane& lane, cuda::unique_event const& event);

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
    /// True once everything is on the device; never blocks (except for Adasum, whose steps wait for the other ranks).
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
