#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/internal/blocking_call.hpp"

namespace muster::detail {

namespace {

/// Shared with the thread, which may outlive the caller's interest.
struct outcome {
    std::mutex guard;
    std::condition_variable changed;
    bool finished = false;
    std::exception_ptr problem;
};

}  // namespace

bool came_back(duration deadline, std::function<void()> call) {
    if (deadline.count() <= 0) {
        call();
        return true;
    }
    auto const result = std::make_shared<outcome>();
    std::thread runner([result, call = std::move(call)]() mutable {
        std::exception_ptr problem;
        try {
            call();
        } catch (...) {
            problem = std::current_exception();
        }
        call = nullptr;  // what it owned goes before the caller is told
        std::scoped_lock const lock(result->guard);
        result->problem = problem;
        result->finished = true;
        result->changed.notify_all();
    });
    {
        std::unique_lock lock(result->guard);
        // A deadline of days would overflow the clock.
        auto const limit = std::chrono::duration_cast<std::chrono::milliseconds>(std::min(deadline, duration{1e7}));
        if (!result->changed.wait_for(lock, limit, [&] { return result->finished; })) {
            runner.detach();
            return false;
        }
    }
    runner.join();
    if (result->problem) std::rethrow_exception(result->problem);
    return true;
}

}  // namespace muster::detail
