// The timer of checks whether another rank is at another collective.
#pragma once

#include <chrono>

namespace muster::detail {

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

}  // namespace muster::detail
