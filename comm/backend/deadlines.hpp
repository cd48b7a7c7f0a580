// Calls that end at a deadline, and the timer of checks on what other ranks call.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/units.hpp"

namespace muster::detail {

// A timer that says when to check whether another rank is in another collective.

/// It is due once a millisecond by the clock, not after a number of polls: a rank that yields its processor between polls may
/// poll only a few hundred times a second. It reads the clock once in 64 polls; most collectives need fewer.
class mismatch_timer {
  public:
    void start() noexcept { polls_ = 0; }

    /// Call it at each poll that finds nothing new.
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

/// Runs a call that may never return on its own thread. If it does not, the thread stays in it until the process ends: so `call`
/// must own whatever it uses, and nothing may call the library that it is in any more.
class call_on_thread {
  public:
    explicit call_on_thread(std::function<void()> call);

    /// Waits for at most this long. Returns whether the call came back; throws what it threw.
    bool wait(duration at_most);

  private:
    struct outcome;
    std::shared_ptr<outcome> outcome_;  ///< shared with the thread, which may outlive this
};

/// Runs `call` within `deadline`, or, if that is 0, on the calling thread without a limit. Returns whether it came back.
bool call_with_deadline(duration deadline, std::function<void()> call);

}  // namespace muster::detail
