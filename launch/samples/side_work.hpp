// Work that a driver or a file system may hold up for long: a thread does it while an event loop runs.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "launch/system/event_loop.hpp"

namespace muster {

/// Does one piece of work at a time. Where no thread can start, and where work fails, nothing is done: what depends on it must not end a run.
class side_work {
  public:
    /// `what` the work is for names its thread. After each piece there is a pause of `rests` times its processor time. `done` is called from the loop's thread.
    side_work(event_loop& loop, std::string_view what, double rests, event_loop::callback done);
    /// Leaves work in progress alone.
    ~side_work();
    side_work(side_work const&) = delete;
    side_work& operator=(side_work const&) = delete;

    /// Returns whether work goes on, or rests.
    bool is_busy() const noexcept { return works_ || event_loop::clock::now() < rests_until_; }
    /// Returns for how long it goes on; 0: it does not.
    duration busy_for() const noexcept { return works_ ? event_loop::clock::now() - begun_ : duration(0); }
    /// Begins work, which may outlive this object and so must own what it uses. Does nothing while other work goes on.
    void begin(std::function<void()> work);
    /// Waits for the end of work in progress; returns whether none is left.
    bool wait_until(event_loop::clock::time_point when);

  private:
    struct state;
    event_loop& loop_;
    std::string_view what_;
    double rests_;
    bool works_ = false;
    event_loop::clock::time_point begun_{}, rests_until_{};
    std::shared_ptr<state> state_;
};

}  // namespace muster
