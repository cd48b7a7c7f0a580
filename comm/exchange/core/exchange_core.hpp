// The exchange core runs the thread of an exchange and holds what it shares with threads that submit.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/backend/processes/fork_count.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/negotiation/negotiator.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "comm/exchange/request/name_table.hpp"
#include "comm/exchange/request/pending_request.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

/// A process set, by its number.
struct process_set {
    enum class standing { open, closing, removed };
    std::vector<int> members;
    bool by_members = false;  ///< they alone made it, and remove it
    standing is = standing::open;
};

class exchange_core final : public finisher {
  public:
    /// Starts the thread and waits until it has its communicator.
    exchange_core(identity const& who, exchange_options const& options);
    ~exchange_core();

    // All of submit() and start() throw errc::usage if a request of that name is in flight, and the first failure if there was
    // one.

    /// Whether this is a child that was forked since, which has neither the thread nor its locks: nothing here may be waited for or destroyed.
    bool is_foreign() const noexcept { return process_.is_foreign(); }
    /// Throws errc::usage in such a child, as everything below does.
    void check_process() const;

    /// Hands a request over.
    void submit(pending_ptr const& what);
    /// The same, using what is left of the last request of that name.
    pending_ptr submit(single_allreduce const& what);
    /// A group that was prepared.
    pending_ptr start(prepared const& what, void* stream);

    /// A name for a request that has none. Names are taken in turn, whether or not earlier requests have ended here, so that ranks that
    /// call equally often take the same. `before`, if any, has this name and is still in flight: it must end first.
    struct turn {
        std::string name;
        pending_ptr before;
    };
    turn next_turn(exchange_kind kind, int set);

    comm_buffer allocate(std::size_t bytes);

    /// Whether it has ended by then. `to_its_end`: the caller does nothing else before, though it may look up in between.
    bool wait(pending_request& what, exchange_clock::time_point until, bool to_its_end);
    /// Whether the device knows of all of it, or it has ended, by then.
    bool wait_handed(pending_request& what, exchange_clock::time_point until);
    /// Whether any of them has ended by then.
    bool wait_any(std::span<pending_request* const> all, exchange_clock::time_point until);
    /// Calls it once the request has ended: on the exchange's thread, or at once where it has.
    void call_after(pending_request& what, completion_call call);
    void wake();
    /// See gpu_access::mark; throws comm_error naming the request.
    std::unique_ptr<device_part> mark(exchange_kind kind, std::string_view name, void* stream);

    /// Collective end, then the thread's. `unwinding`: do not wait for other ranks.
    void close(bool unwinding) noexcept;

    identity const& who() const noexcept { return who_; }
    std::string const& backend() const noexcept { return backend_; }
    std::string const& why_backend() const noexcept { return why_backend_; }
    exchange_options const& options() const noexcept { return options_; }
    std::vector<int> members(int set) const;  ///< throws errc::usage if there is no such set, or none any more

    /// Nothing can be submitted to that set any more; the ranks whose consent it takes to remove it. Throws errc::usage if there is
    /// none, or if it has requests in flight.
    std::vector<int> close_set(int set);
    /// Removing it has failed: it goes on.
    void reopen_set(int set);
    /// How many messages with this tag were sent to, or received from, that rank of the set before.
    std::uint64_t count_message(int set, int peer, int tag, bool sends);
    /// For tensors in device memory: "" until there are any.
    std::string_view device_backend() const;
    flight_dump dump() const;

    void finish(std::span<pending_ptr const> ended) override;

    counters count;
    timeline trace;
    flight_recorder recorder;
    clock_offset offset;

  private:
    // exchange_setup.cpp: how it begins.
    void set_up(communicator ranks);
    negotiator::hooks hooks_of_any_set();
    void measure_clocks(communicator& ranks);
    std::vector<std::string> gather_places(communicator& ranks) const;
    int make_set(communicator& ranks, std::vector<int> const& members, bool by_members);
    void remove_set(int set);
    void end_removed_sets();
    void ask_for_device();
    void open_device(communicator& ranks);
    std::unique_ptr<device_lane> lane_over(std::vector<int> const& members);

    // The loop of its thread.
    void run();
    void loop();
    bool drain();
    void pause(step_result const& overall, exchange_clock::time_point quiet_since);
    void end_well();

    // The end, when something has failed.
    void fail(std::exception_ptr const& problem);
    void fail_what_is_left(std::vector<pending_ptr> left);
    void dump_flight(std::string const& reason, std::vector<int> const& culprits);
    [[noreturn]] void throw_failure() const;

    /// The one way into the queue.
    template <typename Choose>
    pending_ptr enter(int set, exchange_kind kind, std::string_view name, Choose&& choose);

    // with guard_ held
    void check_open() const;
    void check_set(int set) const;
    [[noreturn]] void refuse_in_flight(exchange_kind kind, std::string_view name) const;
    void enqueue(pending_ptr what, bool& notify);
    template <typename Until>
    bool wait_until(std::span<pending_request* const> all, exchange_clock::time_point until, bool to_its_end, Until&& is_over);
    bool caller_waits(int set);
    void note_caller() noexcept {
        if (std::this_thread::get_id() != caller_) several_callers_.store(true, std::memory_order_relaxed);
    }
    void run_calls(std::span<pending_ptr const> ended);
    exchange_clock::duration::rep deadline_from(exchange_clock::time_point submitted) const noexcept;

    process_mark const process_;
    identity who_;  // constant once the ranks have met
    exchange_options const options_;
    exchange_clock::duration const deadline_;
    residuals lost_;  // the thread's own, as the next
    device_residuals lost_on_device_;
    gpu_access gpu_;  // before what has events of it
    exchange_context shared_;
    std::string backend_, why_backend_;
    std::vector<std::string> places_;

    mutable std::mutex guard_;  // of what follows
    std::vector<pending_ptr> queue_;
    name_table names_;
    std::map<std::pair<exchange_kind, int>, unsigned> turns_;  ///< taken so far, of each kind in each set
    communicator* ranks_ = nullptr;  // all of them; only to be asked for memory by others than the thread; null at the end
    std::vector<process_set> sets_;
    std::map<std::tuple<int, int, int, bool>, std::uint64_t> messages_;
    std::string_view device_backend_ = "";
    std::optional<failure_text> failure_;
    bool asleep_ = false, gathering_ = false, woken_ = false;
    std::size_t queued_bytes_ = 0;
    std::condition_variable work_;

    std::atomic<bool> has_work_{false}, hurry_{false}, closing_{false}, abandon_{false};
    std::atomic<int> waiters_{0};
    std::mutex ended_guard_;
    std::condition_variable ended_;
    std::thread::id const caller_ = std::this_thread::get_id();  ///< whose requests they are, while no other thread submits any
    std::atomic<bool> several_callers_{false};
    std::atomic<pending_request const*> caller_waits_in_{nullptr};  ///< to its end; it changes under ended_guard_
    std::mutex start_guard_;
    std::condition_variable started_;
    bool is_started_ = false;
    std::exception_ptr start_problem_;

    // the thread's own
    std::vector<pending_ptr> taken_;                        // out of the queue; kept for its memory
    std::vector<std::unique_ptr<negotiator>> negotiators_;  // by number of the set; null: not a member
    std::deque<int> ending_sets_;                           // removed, in the order of that
    bool asked_for_device_ = false;
    device_lane* whole_lane_ = nullptr;  // of set 0
    std::string no_device_;              // why there will be none
    std::thread thread_;
};

}  // namespace muster::detail
