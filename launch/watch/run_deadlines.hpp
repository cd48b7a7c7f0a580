// The deadlines that the user set for a run: --timeout, --idle-timeout and --signal-before-end.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "launch/settings/run_options.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Sets timers in a loop and acts when they are due, as long as the run is not ending by itself.
class run_deadlines {
  public:
    /// What the supervisor of the run knows and does.
    struct supervision {
        std::function<bool()> active;                           ///< the run is not ending yet
        std::function<std::size_t()> running;                   ///< how many ranks run
        std::function<void(std::string const& reason)> expire;  ///< the run is to end with the exit code of a timeout
        std::function<void(std::string const& when, int signal_number)>
            warn;  ///< the ranks are to get this signal, so long before the end
    };

    /// `ends_at`: when the job's time is up, if that is known. `age`: of the run, whose earlier generations count for --timeout. `options` and `loop` must outlive this.
    run_deadlines(event_loop& loop, run_options const& options, std::optional<std::chrono::system_clock::time_point> ends_at,
                  duration age, supervision what);

    /// --timeout and --idle-timeout count from now on.
    void start();
    /// Sets the signal of --signal-before-end; one that is due already is sent at once.
    void start_early_signal();
    /// A rank has written something, or the ranks start only now.
    void note_output() noexcept { last_output_ = event_loop::clock::now(); }

  private:
    void check_idle();

    event_loop& loop_;
    run_options const& options_;
    std::optional<std::chrono::system_clock::time_point> ends_at_;
    duration age_;
    supervision run_;
    event_loop::clock::time_point last_output_ = event_loop::clock::now();
};

}  // namespace muster
