// A negotiator agrees with a process set's ranks on what all have submitted, and runs it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/batch/batch_runner.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/negotiation/coordinator.hpp"
#include "comm/exchange/negotiation/negotiation_round.hpp"
#include "comm/exchange/negotiation/negotiation_states.hpp"
#include "comm/exchange/negotiation/overdue_watch.hpp"
#include "comm/exchange/negotiation/response_cache.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

/// The work that a step leaves.
struct step_result {
    bool moved = false;      ///< something has happened: step again
    bool busy = false;       ///< an operation is under way: step again soon
    bool data = false;       ///< it moves data: its speed may depend on how soon
    bool gathering = false;  ///< `wake` ends a time of gathering: single tensors until then need not wake the thread
    exchange_clock::time_point wake = exchange_clock::time_point::max();  ///< if neither: when at the latest

    void add(step_result const& other) noexcept;
};

/// A machine of states that never blocks, so that one thread can drive many. From each round of negotiation every rank draws the same
/// conclusions. A rank enters a round when it has something to say or waits for others, else ten times a second.
///
/// The exchange's thread only. Throws comm_error when ranks are dead or late: the exchange has then failed.
class negotiator {
  public:
    struct hooks {
        /// Returns whether the submitting thread waits for a request of that set, and has handed over all that it submitted: it
        /// submits nothing more before one of its requests has ended.
        std::function<bool(int)> caller_waits;
        /// The names that requests of that set take in turn begin anew: the ranks have called differently often.
        std::function<void(int)> forget_turns;
        /// All ranks have agreed on a new process set: makes it (collective), returns its number. The last: its members alone did.
        std::function<int(communicator&, std::vector<int> const&, bool)> make_set;
        /// The process set of that number is to end.
        std::function<void(int)> remove_set;
        /// Some rank has tensors in device memory: prepares all process sets for such (collective). Perhaps again.
        std::function<void(communicator&)> open_device;
    };

    /// `places` names each rank's host and device, for messages.
    negotiator(int set, communicator ranks, exchange_context& shared, std::vector<std::string> places, hooks calls);

    void submit(pending_ptr one);
    /// Somebody waits: what has been gathered is to be negotiated.
    void hurry() noexcept {
        if (!waiting_.empty()) take(pace_event::is_waited_for);
    }
    step_result step(exchange_clock::time_point now);

    /// All ranks have left.
    bool ended() const noexcept { return state_ == negotiation_state::idle && coordinator_.all_left() && !runner_.has_handed(); }
    /// Hands over everything that has not ended.
    void give_back(std::vector<pending_ptr>& into);
    /// Memory that other ranks may still write to is never freed. For a failed exchange.
    void leak() noexcept;
    /// See batch_runner.
    void use_lane(std::unique_ptr<device_lane> lane) { runner_.use_lane(std::move(lane)); }
    void refuse_device(std::string why) { runner_.refuse_device(std::move(why)); }

    communicator& ranks() noexcept { return ranks_; }

  private:
    static bool is_cacheable(exchange_kind kind) noexcept { return kind <= exchange_kind::barrier; }

    void take(negotiation_event what);
    void take(pace_event what) noexcept {
        if (auto const* const row = find_row<pace_rows>(pace_, what)) pace_ = row->to;
    }
    step_result step_on(exchange_clock::time_point now);
    exchange_clock::time_point due(exchange_clock::time_point now) const;
    bool flushes(exchange_clock::time_point now) const;
    void enter_round(exchange_clock::time_point now);
    void sort_waiting();
    std::optional<response_cache::position> find_cached(pending_request& one);
    void finish_round(exchange_clock::time_point now);
    void plan();
    void count_waits(exchange_clock::time_point now);
    bool run_batches();

    // the results of a round
    void take_hits();
    void take_announcements();
    void conclude(agreement&& each);
    void carry_out(agreement&& each, pending_ptr& unit);
    void end_what_never_meets();
    void fail_unit(pending_ptr const& unit, errc code, std::string const& fault, std::vector<int> const& culprits);
    void agreed_on(std::shared_ptr<agreement const> what, pending_ptr unit);
    void forget_cache();

    // Deadlines that pass, tensors that are missing, ranks that have died.
    bool advance(operation& what, exchange_clock::time_point now);
    void check_for_dead(operation const& what, exchange_clock::time_point began, exchange_clock::time_point now);
    void check_deadlines(exchange_clock::time_point now);
    void check_stalls(exchange_clock::time_point now);
    template <typename Body>
    void for_pending(Body&& body) const;
    void give_up(pending_request const& expired, exchange_clock::time_point now);
    std::vector<late_rank> late_ranks();

    int set_;
    communicator ranks_;
    exchange_context& shared_;
    std::vector<std::string> places_;
    hooks calls_;
    exchange_clock::duration const cycle_time_;

    negotiation_state state_ = negotiation_state::idle;
    request_pace pace_ = request_pace::gather;
    round_yield yield_ = round_yield::nothing;  // of this round
    coordinator coordinator_;
    response_cache cache_;
    std::vector<pending_ptr> waiting_;  // not sorted into the next round yet
    std::size_t waiting_bytes_ = 0;
    std::vector<pending_ptr> hits_;  // by position in the cache; null: none
    std::vector<response_cache::position> hit_positions_;
    std::vector<response_cache::position> outdated_;          // entries that no longer hold here
    std::unordered_map<std::string, pending_ptr> announced_;  // by name
    std::vector<exchange_request> to_announce_;

    operation operation_;
    negotiation_round round_;
    exchange_clock::time_point operation_began_{}, last_check_{}, round_began_{}, round_ended_{};
    exchange_clock::time_point last_round_{};
    exchange_clock::duration pause_{0};

    std::vector<std::shared_ptr<agreement const>> ready_;
    std::vector<pending_ptr> units_;
    std::optional<exchange_clock::time_point> expired_since_;
    batch_runner runner_;
    overdue_watch watch_;
    std::uint64_t trace_id_ = 0, agreeing_wait_ns_ = 0;  // the latter of this round
    duration waited_{};                                  // requests of this round waited, for all ranks to submit theirs
    std::vector<pending_ptr> held_back_;                 // kept for its memory
};

}  // namespace muster::detail
