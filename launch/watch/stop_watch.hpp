// Watches for ranks that stay stopped, by a signal or in a frozen cgroup, in runs that go on without a lost one.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "launch/settings/run_options.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/watch/evidence.hpp"
#include "launch/watch/stop_looks.hpp"

namespace muster {

/// Nobody else may miss such a rank: it may be the last one, or the others compute. A rank that is stopped at two looks in a row
/// is killed, and its end counts as a failure. One in an uninterruptible wait is only named, since such a wait may end. Serves elastic runs only: in others a stopped rank is the user's business. Used
/// from the loop's thread.
class stop_watch {
  public:
    struct supervision {
        std::function<bool()> active;  ///< ranks run and are not ending
        std::function<void(std::vector<int> const& ranks, std::function<void(held_ranks const& held)> then)> look;
        std::function<void(int rank)> kill;
        std::function<void(std::string const& line)> say;
    };
    /// All of these must outlive it.
    stop_watch(event_loop& loop, evidence const& known, supervision run) : loop_(loop), known_(known), run_(std::move(run)) {}

    static constexpr duration usual_pause{5};

    /// Begins to look, each time after this pause.
    void start(duration pause = usual_pause);

  private:
    double now_s() const;
    void look_later();
    void look();
    void take(held_ranks const& held);

    event_loop& loop_;
    evidence const& known_;
    supervision run_;
    stop_looks looks_;
    event_loop::clock::time_point begin_ = event_loop::clock::now();
};

}  // namespace muster
