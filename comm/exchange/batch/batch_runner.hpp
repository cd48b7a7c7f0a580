// A batch runner runs batches one after the other through a communicator.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/exchange/batch/device_batch.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/batch/host_batch.hpp"
#include "comm/exchange/batch/plan_batches.hpp"

namespace muster::detail {

/// The number of a request's tensors in a batch.
struct unit_share {
    std::size_t unit = 0;
    std::size_t tensors = 0;
};

/// Agreements cut into batches. In the steady state the same agreements come together again and again.
struct batch_plan {
    std::vector<std::shared_ptr<agreement const>> of;
    std::uint64_t used = 0;  ///< when it was used last
    std::vector<fused_batch> batches;
    std::vector<std::vector<unit_share>> units;  ///< of each batch

    /// The places of each batch's tensors the last time, and the group to which they all belong, if there is one.
    std::vector<batch_layout> layouts;
    std::vector<std::shared_ptr<std::vector<tensor_io> const>> laid_out;

    /// Movers of batches in device memory, and the number of tensors there of each agreement; empty without such tensors.
    std::vector<device_movers> movers;
    std::vector<std::size_t> on_device;
};

/// Runs what ranks have agreed on. Only the exchange's thread uses it. Throws what the communicator throws.
class batch_runner {
  public:
    batch_runner(int set, communicator& ranks, exchange_context& shared)
        : set_(set), ranks_(ranks), shared_(shared), first_(ranks), second_(ranks) {}

    /// Takes new work; the earlier work has ended. `units[i]` is this rank's request for `agreed[i]`, or null if it has joined.
    void load(std::vector<std::shared_ptr<agreement const>> agreed, std::vector<pending_ptr> units);
    bool has_started() const noexcept { return host_.has_value() || device_.has_value(); }
    std::vector<pending_ptr> const& units() const noexcept { return units_; }
    bool ended() const noexcept { return plan_ == nullptr || next_batch_ == plan_->batches.size(); }

    /// Starts or moves the next batch. Returns true if it has ended, or if the device knows all of it: then it is handed over,
    /// and others may start behind it.
    bool advance();

    /// Ends the handed batches that the device has finished. Returns whether there were any.
    bool end_finished();
    bool has_handed() const noexcept { return !handed_.empty(); }
    std::deque<handed_batch> const& handed() const noexcept { return handed_; }

    /// Batches in device memory wait for one of these: a lane over the same ranks, or the reason for its lack, the same on all
    /// ranks.
    void use_lane(std::unique_ptr<device_lane> lane) noexcept { lane_ = std::move(lane); }
    void refuse_device(std::string why) { no_lane_ = std::move(why); }

    operation& under_way() { return host_ ? host_->under_way() : device_->under_way(); }
    exchange_clock::time_point began() const noexcept { return began_; }
    void leak() noexcept;

  private:
    static constexpr std::size_t most_plans = 32;

    batch_plan& find_plan();
    batch_layout& layout_of_next();
    void start();
    bool start_on_device();
    void note_handed();
    void begin_records();
    void take_ended(std::vector<ending_unit>& into);
    void end_next();
    void end(std::span<ending_unit> all);

    int set_;
    communicator& ranks_;
    exchange_context& shared_;
    std::vector<std::shared_ptr<agreement const>> agreed_;
    std::vector<std::unique_ptr<batch_plan>> plans_;
    batch_plan* plan_ = nullptr;  ///< of agreed_
    std::uint64_t loads_ = 0;
    std::vector<pending_ptr> units_;
    std::vector<std::size_t> tensors_left_;
    std::vector<std::uint64_t> records_;
    std::size_t next_batch_ = 0;
    std::vector<ending_unit> ending_;  // kept for their memory
    std::vector<pending_ptr> ended_;
    std::optional<host_batch> host_;
    scratch first_, second_;
    std::unique_ptr<device_lane> lane_;
    std::string no_lane_;                              // the reason why there will be none
    std::optional<device_batch> device_;               // its last part is not on the device yet: nothing else starts
    bool is_on_lane_ = false;                          // it has begun
    std::deque<handed_batch> handed_;                  // in the order in which they end
    std::vector<std::vector<device_movers>> retired_;  // of plans that were forgotten while a batch was handed
    std::vector<std::size_t> to_hand_;                 // tensors in device memory that the device does not know yet, of each unit
    exchange_clock::time_point began_{};
    std::uint64_t sequence_ = 0, trace_id_ = 0;
};

}  // namespace muster::detail
