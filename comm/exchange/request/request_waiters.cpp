#include "comm/exchange/request/request_waiters.hpp"

#include <vector>

namespace muster::detail {

/// A thread that waits counts itself before it reads the state; here the state is written before the count is read. So one of the two sees
/// the other, by the order of the count's changes.
void request_waiters::finish(std::span<pending_ptr const> ended) {
    if (count_.fetch_add(0, std::memory_order_acq_rel) == 0) return;
    bool waited = false, has_calls = false;
    for (auto const& each : ended) {
        waited = waited || each->waited.load(std::memory_order_relaxed);
        has_calls = has_calls || each->has_calls.load(std::memory_order_relaxed);
    }
    if (!waited && !has_calls) return;
    // A waiting thread reads the state with this lock held.
    { std::scoped_lock const lock(guard_); }
    if (waited) ended_.notify_all();
    if (has_calls) make_calls(ended);
}

void request_waiters::make_calls(std::span<pending_ptr const> ended) {
    std::vector<completion_call> due;
    {
        std::scoped_lock const lock(guard_);
        for (auto const& each : ended) {
            if (each->state.load(std::memory_order_acquire) == pending_request::phase::waiting) continue;  // only handed over
            due.insert(due.end(), each->calls.begin(), each->calls.end());
            each->calls.clear();
        }
    }
    count_.fetch_sub(static_cast<int>(due.size()), std::memory_order_relaxed);
    for (auto const& each : due) each.call(each.state);
}

/// Counts itself like a thread that waits: so requests without calls cost nothing.
void request_waiters::call_after(pending_request& what, completion_call call) {
    {
        std::scoped_lock const lock(guard_);
        what.calls.push_back(call);
        what.has_calls.store(true, std::memory_order_relaxed);
        count_.fetch_add(1, std::memory_order_acq_rel);
        if (what.state.load(std::memory_order_acquire) == pending_request::phase::waiting) return;
        count_.fetch_sub(1, std::memory_order_relaxed);
        what.calls.pop_back();
    }
    call.call(call.state);
}

bool request_waiters::caller_waits(int set) const {
    if (several_callers_.load(std::memory_order_relaxed) || caller_waits_in_.load(std::memory_order_relaxed) == nullptr)
        return false;
    constexpr auto a_while = std::chrono::seconds(1);
    // Each round asks this, so it takes the lock, which the caller needs at the same time, only for waits that last.
    exchange_clock::duration const since{waited_since_.load(std::memory_order_relaxed)};
    if (exchange_clock::now().time_since_epoch() - since < a_while) return false;
    std::scoped_lock const lock(guard_);
    auto const* const in = caller_waits_in_.load(std::memory_order_relaxed);
    return in != nullptr && in->set == set && in->state.load(std::memory_order_acquire) == pending_request::phase::waiting &&
           exchange_clock::now() - in->submitted >= a_while;
}

}  // namespace muster::detail
