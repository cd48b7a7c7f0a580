#include "comm/backend/deadlines.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "base/process/start_thread.hpp"

namespace muster::detail {

struct call_on_thread::outcome {
    std::mutex guard;
    std::condition_variable changed;
    bool finished = false;
    std::exception_ptr problem;
};

call_on_thread::call_on_thread(std::function<void()> call) : outcome_(std::make_shared<outcome>()) {
    start_thread("for a call with a deadline", [result = outcome_, call = std::move(call)]() mutable {
        std::exception_ptr problem;
        try {
            call();
        } catch (...) {
            problem = std::current_exception();
        }
        call = nullptr;  // destroys what it owns before the caller goes on
        std::scoped_lock const lock(result->guard);
        result->problem = std::move(problem);
        result->finished = true;
        result->changed.notify_all();
    }).detach();
}

bool call_on_thread::wait(duration at_most) {
    std::unique_lock lock(outcome_->guard);
    // A longer limit would overflow the clock.
    auto const limit = std::chrono::duration_cast<std::chrono::milliseconds>(std::min(at_most, duration{1e7}));
    if (!outcome_->changed.wait_for(lock, limit, [&] { return outcome_->finished; })) return false;
    if (auto const problem = std::exchange(outcome_->problem, nullptr)) std::rethrow_exception(problem);
    return true;
}

bool call_with_deadline(duration deadline, std::function<void()> call) {
    if (deadline.count() > 0) return call_on_thread(std::move(call)).wait(deadline);
    call();
    return true;
}

}  // namespace muster::detail
