// A batch in device memory on its way through a lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/exchange/batch/device_lane.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/batch/plan_batches.hpp"

namespace muster::detail {

/// Tensors that go into a fusion buffer, or out of it: from[i] to to[i], times `factor`; with error feedback there is a residual
/// for each.
struct device_move {
    std::vector<tensor_view> from, to;
    double factor = 1;
    std::vector<tensor_view> residuals{};
    bool operator==(device_move const&) const = default;
};

/// Moves on a lane's stream; kept, since tensors mostly lie where they lay before. The lane outlives it.
class device_mover {
  public:
    /// It is what was moved the last time: nothing is left to be prepared.
    bool repeats(device_move const& what) const { return what.from.empty() || what == last_; }

    /// Makes what is needed for it. Not while anything flies: this can wait for the device. Without kernels only types that are
    /// the same, by a factor of 1. Throws errc::unavailable, cuda_error.
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

/// A request that ends with a batch, and its place in the flight recorder.
struct ending_unit {
    pending_ptr what;  ///< null where this rank has joined
    std::uint64_t record = 0;
};

/// What is left of a batch when the device knows of all of it: to be asked whether it is through.
struct device_flight {
    operation under_way;
    std::shared_ptr<cuda::unique_event const> finished;  ///< behind the results
    std::string label;
    exchange_kind kind = exchange_kind::allreduce;
    std::size_t bytes = 0;
    exchange_clock::time_point began;
    std::vector<std::vector<std::byte>> read_by_device;
    std::vector<ending_unit> ends;

    /// True once the device is through. Throws what the communicator throws.
    bool done(device_lane& lane);
    /// The ranks have failed: memory that the device may still write to is given up for good.
    void leak() noexcept;
};

/// As batch_run, but the device does the work: start() puts what precedes the collective and the collective on the lane,
/// hand_over() what follows, from when on other batches may be started behind it. The exchange's thread must never wait for the
/// device, which may wait for a rank that has failed: what asks the driver for memory is therefore done while nothing flies.
class device_run {
  public:
    struct parts {
        int set = 0;
        device_lane& lane;
        communicator& host;  ///< of the same ranks: what Adasum goes through
        context& shared;
        device_movers& movers;
    };

    /// All of it outlives the run.
    device_run(parts const& with, fused_batch const& batch, std::span<std::shared_ptr<agreement const> const> agreed,
               std::span<pending_ptr const> units);

    /// Whether start() asks the driver for nothing: it repeats what was done before.
    bool repeats() const;
    void start();
    /// True once everything is on the device; never blocks (but for Adasum, in whose steps the other ranks are waited for).
    /// Throws what the communicator throws.
    bool hand_over();
    /// After that.
    device_flight take_off() &&;

    /// As device_flight::leak.
    void leak() noexcept;

    std::string const& label() const noexcept { return label_; }
    operation& under_way() noexcept { return operation_; }

  private:
    agreement const& unit_of(fusion_item const& item) const { return *agreed_[item.unit]; }
    tensor_spec const& spec_of(fusion_item const& item) const { return unit_of(item).what.tensors.at(item.tensor); }
    std::size_t count_of(fusion_item const& item) const { return static_cast<std::size_t>(spec_of(item).shape.elements()); }
    tensor_io const* io_of(fusion_item const& item) const;
    tensor_view residual_of(fusion_item const& item) const;
    pending* single() const { return units_[batch_.items.front().unit].get(); }
    bool is_compressed() const noexcept { return batch_.wire != compression::none && lane_.ranks.size() > 1; }

    void lay_out();
    void make_room();
    bool feeds_back() const noexcept { return batch_.error_feedback && is_compressed(); }
    void wait_for_programs();
    void start_allreduce();
    void start_adasum();
    void finish_adasum();
    void start_broadcast();
    void start_allgather();
    void start_reducescatter();
    void start_alltoall();
    tensor_view single_input(device_scratch& stand_in);
    tensor_view output(std::size_t count, std::vector<std::int64_t> rows);
    void fill(tensor_view const& view);
    void copy(void* to, void const* from, std::size_t bytes);
    cuda::driver const& with() const noexcept { return lane_.on->with(); }

    int set_;
    device_lane& lane_;
    communicator& host_;
    context& shared_;
    device_movers& movers_;
    fused_batch const& batch_;
    std::span<std::shared_ptr<agreement const> const> agreed_;
    std::span<pending_ptr const> units_;
    operation operation_;
    std::string label_;
    tensor_view in_, out_;               ///< what a fused allreduce reads and writes; null data: the fusion buffer
    device_move pack_, unpack_;          ///< with it
    std::vector<tensor_view> missing_;   ///< places in it of tensors that this rank has joined in
    tensor_view share_from_, share_to_;  ///< a reducescatter's share of what was reduced in whole
    std::vector<std::vector<std::byte>> read_by_device_;  ///< neutral elements
    std::shared_ptr<cuda::unique_event const> staged_, finished_;
    exchange_clock::time_point begin_;
};

}  // namespace muster::detail
