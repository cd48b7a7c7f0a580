// Batches, one after the other, through a communicator.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/exchange/fusion.hpp"
#include "comm/exchange/internal/batch_run.hpp"
#include "comm/exchange/internal/context.hpp"
#include "comm/exchange/internal/device_run.hpp"

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
    /// Something is under way.
    bool has_started() const noexcept { return run_.has_value() || starting_.has_value() || !on_device_.empty(); }
    pending_ptr const& unit(std::size_t index) const { return units_[index]; }
    std::vector<pending_ptr> const& units() const noexcept { return units_; }
    std::vector<std::shared_ptr<agreement const>> const& agreed() const noexcept { return agreed_; }
    /// Agreement `unit` has been done since load() or rewind().
    bool has_ended(std::size_t unit) const { return tensors_left_[unit] == 0; }
    std::string const& label() const { return run_ ? run_->label() : oldest().label(); }
    /// All batches have been started, and perhaps not all have ended.
    bool all_started() const noexcept { return plan_ == nullptr || next_batch_ == plan_->batches.size(); }
    bool ended() const noexcept { return all_started() && on_device_.empty(); }

    /// Moves what is under way, and starts the next batch if nothing is in its way and it may; true if something has changed.
    /// Batches in host memory come one after the other. One in device memory ends when the device is through with it, and the next
    /// may be started before that: the device does them in order.
    bool advance(bool may_start = true);

    /// Begins again with the same agreements, no requests given.
    void rewind();

    /// Cuts agreements into other batches from the next load() on.
    void use_fusion_bytes(std::size_t bytes) noexcept { fusion_bytes_ = bytes; }

    operation& under_way() { return run_ ? run_->under_way() : oldest().under_way(); }
    exchange_clock::time_point began() const noexcept { return run_ ? began_ : oldest().began(); }
    void leak() noexcept;

  private:
    static constexpr std::size_t most_plans = 32;

    batch_plan& find_plan();
    batch_layout& layout_of_next();
    void start();
    bool start_on_device();
    void hand_over();
    void begin_records();
    void end(std::size_t batch);
    device_run& oldest() { return on_device_.empty() ? *starting_ : on_device_.front(); }
    device_run const& oldest() const { return on_device_.empty() ? *starting_ : on_device_.front(); }

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
    std::vector<std::uint64_t> flights_;
    std::size_t next_batch_ = 0;
    std::vector<pending_ptr> ended_;  // kept for its memory
    std::optional<batch_run> run_;
    scratch first_, second_;
    std::unique_ptr<device_lane> lane_;   // made when it is first needed
    std::string no_lane_;                 // why there is none
    std::optional<device_run> starting_;  // not handed over yet: nothing else starts
    std::deque<device_run> on_device_;    // handed over, in their order
    std::vector<std::size_t> to_hand_;    // tensors in device memory of each unit that are not handed over
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
