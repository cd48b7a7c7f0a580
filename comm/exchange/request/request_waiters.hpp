// The threads that wait for requests, and the calls that follow when requests end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

/// The exchange's thread ends requests and calls `finish`; any thread may wait. A request that nobody waits for costs one read of a
/// counter.
class request_waiters {
  public:
    /// Wakes the threads that wait for these, which have ended or were handed to the device, and makes the calls of those that have
    /// ended.
    void finish(std::span<pending_ptr const> ended);

    /// Calls it once the request has ended: on the exchange's thread, or at once if it has ended already.
    void call_after(pending_request& what, completion_call call);

    /// Blocks until `is_over` or that time; returns whether it is over. `what` is one of the awaited requests, marked as waited for
    /// before. `to_its_end`: the caller does nothing else before, though the wait may be interrupted.
    template <typename Until>
    bool wait(pending_request const& what, exchange_clock::time_point until, bool to_its_end, Until&& is_over) {
        count_.fetch_add(1, std::memory_order_acq_rel);
        bool const is_caller = to_its_end && std::this_thread::get_id() == caller_;
        std::unique_lock lock(guard_);
        if (is_caller) {
            waited_since_.store(what.submitted.time_since_epoch().count(), std::memory_order_relaxed);
            caller_waits_in_.store(&what, std::memory_order_relaxed);
        }
        bool const over = until == exchange_clock::time_point::max() ? (ended_.wait(lock, is_over), true)
                                                                     : ended_.wait_until(lock, until, is_over);
        if (is_caller) caller_waits_in_.store(nullptr, std::memory_order_relaxed);
        lock.unlock();
        count_.fetch_sub(1, std::memory_order_relaxed);
        return over;
    }

    /// Notes that this thread submits a request.
    void note_caller() noexcept {
        if (std::this_thread::get_id() != caller_) several_callers_.store(true, std::memory_order_relaxed);
    }
    /// Returns whether the only thread that submits waits for a request of that set to its end, and has done so for a while: a signal, or
    /// a thread that has submitted nothing so far, may end the wait. The asking thread sees what was submitted before.
    bool caller_waits(int set) const;

  private:
    void make_calls(std::span<pending_ptr const> ended);

    std::atomic<int> count_{0};
    mutable std::mutex guard_;
    std::condition_variable ended_;
    std::thread::id const caller_ = std::this_thread::get_id();  ///< the thread that submits, as long as it is the only one
    std::atomic<bool> several_callers_{false};
    std::atomic<pending_request const*> caller_waits_in_{nullptr};  ///< waits to its end; changes under guard_
    std::atomic<exchange_clock::duration::rep> waited_since_{0};    ///< when that request was submitted
};

}  // namespace muster::detail
