// Calls that end at a deadline, and how long ranks wait for one that calls something else.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/units.hpp"

namespace muster::detail {

// The timer of checks whether another rank is at another collective.

/// Once a millisecond, by the clock and not by polls: a rank that gives its processor away between polls may poll only a few
/// hundred times a second. The clock is read once in 64 polls, of which most collectives need fewer.
class mismatch_timer {
  public:
    void start() noexcept { polls_ = 0; }

    /// To be asked at each poll that finds nothing new.
    bool due() noexcept {
        if (++polls_ % 64 != 0) return false;
        auto const now = std::chrono::steady_clock::now();
        if (polls_ == 64) last_ = now;
        if (now - last_ < std::chrono::milliseconds(1)) return false;
        last_ = now;
        return true;
    }

  private:
    unsigned polls_ = 0;
    std::chrono::steady_clock::time_point last_{};
};

// Runs a call on its own thread, and stops waiting for it at a deadline.

/// A call that may never return, on its own thread. If it does not, the thread stays in it until the process ends: so
/// `call` must own whatever it uses, and the library that it is in must not be called any more.
class call_on_thread {
  public:
    explicit call_on_thread(std::function<void()> call);

    /// Waits for at most so long; true if it came back, and throws what it threw.
    bool wait(duration at_most);

  private:
    struct outcome;
    std::shared_ptr<outcome> outcome_;  ///< shared with the thread, which may outlive this
};

/// Runs it within `deadline`, or, if that is 0, on the calling thread, without end. True if it came back.
bool call_with_deadline(duration deadline, std::function<void()> call);

}  // namespace muster::detail
