// The exchange core runs the thread of an exchange and holds what it shares with threads that submit.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/backend/processes/rank_processes.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/core/set_negotiators.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "comm/exchange/request/pending_request.hpp"
#include "comm/exchange/request/request_waiters.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

class exchange_core {
  public:
    /// Starts the thread and waits until it has its communicator.
    exchange_core(identity const& who, exchange_options const& options);
    ~exchange_core();

    // All of submit() and start() throw errc::usage if a request of that name is in flight, and the first failure if there was
    // one.

    /// Returns whether this is a child forked since then. It has neither the thread nor its locks, so it may wait for nothing here and destroy
    /// nothing.
    bool is_foreign() const noexcept { return process_.is_foreign(); }
    /// Throws errc::usage in such a child, as everything below does.
    void check_process() const;

    /// Hands a request over.
    void submit(pending_ptr const& what);
    /// Submits it too, using the last request of that name again if possible.
    pending_ptr submit(single_allreduce const& what);
    /// Submits a prepared group.
    pending_ptr start(prepared const& what, void* stream);

    /// A name for a request without one. Names are taken in turn, whether or not earlier requests have ended here, so that ranks that
    /// call equally often take the same names. `before`, if any, has this name and is still in flight: it must end first.
    struct turn {
        std::string name;
        pending_ptr before;
    };
    turn next_turn(exchange_kind kind, int set);

    comm_buffer allocate(std::size_t bytes);

    /// Returns whether it ends by then. `to_its_end`: the caller does nothing else before, though the wait may be interrupted.
    bool wait(pending_request& what, exchange_clock::time_point until, bool to_its_end);
    /// Returns whether, by then, the device knows of all of it or it has ended.
    bool wait_handed(pending_request& what, exchange_clock::time_point until);
    /// Returns whether any of them ends by then.
    bool wait_any(std::span<pending_request* const> all, exchange_clock::time_point until);
    /// Calls it once the request has ended: on the exchange's thread, or at once if it has ended already.
    void call_after(pending_request& what, completion_call call);
    void wake();
    /// See gpu_access::mark; throws comm_error naming the request.
    std::unique_ptr<device_part> mark(exchange_kind kind, std::string_view name, void* stream);

    /// Ends the exchange with the other ranks, then its thread. `unwinding`: does not wait for other ranks.
    void close(bool unwinding) noexcept;

    identity const& who() const noexcept { return who_; }
    std::string const& backend() const noexcept { return backend_; }
    std::string const& why_backend() const noexcept { return why_backend_; }
    exchange_options const& options() const noexcept { return options_; }
    std::vector<int> members(int set) const;  ///< throws errc::usage if there is no such set, or none any more

    /// Closes a set to further requests. Returns the ranks whose consent its removal needs. Throws errc::usage if there is no such
    /// set, or if it has requests in flight.
    std::vector<int> close_set(int set);
    /// Opens the set again after its removal failed.
    void reopen_set(int set);
    /// Returns how many messages with this tag were sent to, or received from, that rank of the set before.
    std::uint64_t count_message(int set, int peer, int tag, bool sends);
    /// Returns the backend for tensors in device memory; "" until there are any.
    std::string_view device_backend() const;
    flight_dump dump() const;

    counters count;
    timeline trace;
    flight_recorder recorder;
    clock_offset offset;

  private:
    void set_up(communicator ranks);
    set_negotiators::hooks hooks_of_sets();

    // The loop of its thread.
    void run();
    void loop();
    bool drain();
    void pause(step_result const& overall, exchange_clock::time_point quiet_since);

    // The end, when something has failed.
    void fail(std::exception_ptr const& problem, bool is_awaited);
    void fail_what_is_left(std::vector<pending_ptr> left);
    void dump_flight(std::string const& reason, std::vector<int> const& culprits);
    [[noreturn]] void throw_failure() const;

    /// Every request enters the queue here.
    template <typename Choose>
    pending_ptr enter(int set, exchange_kind kind, std::string_view name, Choose&& choose);

    // to be called with guard_ held
    void check_open() const;
    [[noreturn]] void refuse_in_flight(exchange_kind kind, std::string_view name) const;
    void enqueue(pending_ptr what, bool& notify);
    template <typename Until>
    bool wait_until(std::span<pending_request* const> all, exchange_clock::time_point until, bool to_its_end, Until&& is_over);
    exchange_clock::duration::rep deadline_from(exchange_clock::time_point submitted) const noexcept;

    process_mark const process_;
    identity who_;  // constant once the ranks have met
    exchange_options const options_;
    exchange_clock::duration const deadline_;
    residuals lost_;  // only the thread uses it and the next
    device_residuals lost_on_device_;
    gpu_access gpu_;  // before whatever has events of it
    request_waiters waiters_;
    exchange_context shared_;
    std::string backend_, why_backend_;

    mutable std::mutex guard_;  // guards what follows
    std::vector<pending_ptr> queue_;
    name_table names_;
    communicator* ranks_ = nullptr;  // all ranks; other threads may only ask it for memory; null at the end
    set_table sets_;
    std::string_view device_backend_ = "";
    std::optional<failure_text> failure_;
    bool asleep_ = false, gathering_ = false, woken_ = false;
    std::size_t queued_bytes_ = 0;
    std::condition_variable work_;

    std::atomic<bool> has_work_{false}, hurry_{false}, closing_{false}, abandon_{false};
    std::mutex start_guard_;
    std::condition_variable started_;
    bool is_started_ = false;
    std::exception_ptr start_problem_;

    // only the thread uses these
    std::vector<pending_ptr> taken_;  // taken from the queue; kept for its memory
    set_negotiators negotiators_;
    std::thread thread_;
};

}  // namespace muster::detail
