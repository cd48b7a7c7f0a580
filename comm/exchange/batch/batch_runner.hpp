// Batches, one after the other, through a communicator.
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

/// What a batch takes of a request.
struct unit_share {
    std::size_t unit = 0;
    std::size_t tensors = 0;
};

/// Agreements cut into batches. In the steady state the same agreements come together again and again.
struct batch_plan {
    std::vector<std::shared_ptr<agreement const>> of;
    std::size_t fusion_bytes = 0;
    std::uint64_t used = 0;  ///< when it was used last
    std::vector<fused_batch> batches;
    std::vector<std::vector<unit_share>> units;  ///< of each batch

    /// Where the tensors of each batch lay the last time, and the group whose tensors these are all, if it is one.
    std::vector<batch_layout> layouts;
    std::vector<std::shared_ptr<std::vector<tensor_io> const>> laid_out;

    /// Of batches in device memory; and how many of its tensors lie there, of each agreement: empty if none does.
    std::vector<device_movers> movers;
    std::vector<std::size_t> on_device;
};

/// Runs what ranks have agreed on. The exchange's thread only; throws what the communicator throws.
class batch_runner {
  public:
    batch_runner(int set, communicator& ranks, context& shared)
        : set_(set), ranks_(ranks), shared_(shared), first_(ranks), second_(ranks) {}

    /// New work; the work before has ended. `units[i]` is this rank's request for `agreed[i]`, or null where it has joined.
    void load(std::vector<std::shared_ptr<agreement const>> agreed, std::vector<pending_ptr> units);
    /// Gives the request for agreement `unit`, where it was null.
    void give(std::size_t unit, pending_ptr request) { units_[unit] = std::move(request); }

    std::vector<fused_batch> const& batches() const noexcept { return plan_->batches; }
    std::size_t next_batch() const noexcept { return next_batch_; }
    bool has_started() const noexcept { return run_.has_value() || starting_.has_value(); }
    pending_ptr const& unit(std::size_t index) const { return units_[index]; }
    std::vector<pending_ptr> const& units() const noexcept { return units_; }
    std::vector<std::shared_ptr<agreement const>> const& agreed() const noexcept { return agreed_; }
    /// Agreement `unit` has been done since load() or rewind(), or flies.
    bool has_ended(std::size_t unit) const { return tensors_left_[unit] == 0; }
    std::string const& label() const { return run_ ? run_->label() : starting_->label(); }
    bool ended() const noexcept { return plan_ == nullptr || next_batch_ == plan_->batches.size(); }

    /// Starts or moves the next batch; true if it has ended, or if the device knows of all of it: it flies then, and others may
    /// be started behind it.
    bool advance();

    /// Ends what flies and has arrived. Whether there was any.
    bool land();
    bool flies() const noexcept { return !flights_.empty(); }
    std::deque<device_flight> const& flights() const noexcept { return flights_; }

    /// Begins again with the same agreements, no requests given.
    void rewind();

    /// What batches in device memory wait for: a lane over the same ranks, or why they cannot be done, on all ranks the same.
    void use_lane(std::unique_ptr<device_lane> lane) noexcept { lane_ = std::move(lane); }
    void refuse_device(std::string why) { no_lane_ = std::move(why); }

    /// Cuts agreements into other batches from the next load() on.
    void use_fusion_bytes(std::size_t bytes) noexcept { fusion_bytes_ = bytes; }

    operation& under_way() { return run_ ? run_->under_way() : starting_->under_way(); }
    exchange_clock::time_point began() const noexcept { return began_; }
    void leak() noexcept;

  private:
    static constexpr std::size_t most_plans = 32;

    batch_plan& find_plan();
    batch_layout& layout_of_next();
    void start();
    bool start_on_device();
    void take_off();
    void begin_records();
    void take_ended(std::vector<ending_unit>& into);
    void end_next();
    void end(std::span<ending_unit> all);

    int set_;
    communicator& ranks_;
    context& shared_;
    std::size_t fusion_bytes_ = 0;
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
    std::optional<batch_run> run_;
    scratch first_, second_;
    std::unique_ptr<device_lane> lane_;
    std::string no_lane_;                              // why there will be none
    std::optional<device_run> starting_;               // its last part is not on the device yet: nothing else starts
    bool is_on_lane_ = false;                          // it has begun
    std::deque<device_flight> flights_;                // in the order in which they arrive
    std::vector<std::vector<device_movers>> retired_;  // of plans that were forgotten while something flew
    std::vector<std::size_t> to_hand_;                 // tensors in device memory of each unit that the device does not know of
    exchange_clock::time_point began_{};
    std::uint64_t sequence_ = 0, trace_id_ = 0;
};

/// Counts a request as ended, well or (with a fault of this rank's own) not.
void complete(pending& unit, counters& count);

/// The ranks that keep an operation from finishing and are gone for good, once they have been so for a while; asked seldom.
class death_watch {
  public:
    std::vector<late_rank> look(operation const& what, exchange_clock::time_point began, exchange_clock::time_point now);

  private:
    exchange_clock::time_point last_look_{}, dead_since_{};
};

}  // namespace muster::detail
