// The deadlines that the user set for a run: --timeout, --idle-timeout and --signal-before-end.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "launch/settings/run_options.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Sets timers in a loop and acts when they are due, unless the run is ending by itself.
class run_deadlines {
  public:
    /// Holds what it needs from the run's supervisor.
    struct supervision {
        std::function<bool()> active;                           ///< the run is not ending yet
        std::function<std::size_t()> running;                   ///< the number of ranks that run
        std::function<void(std::string const& reason)> expire;  ///< ends the run with the exit code of a timeout
        std::function<void(std::string const& when, int signal_number)>
            warn;  ///< sends the ranks this signal, so long before the end
    };

    /// `ends_at`: when the job's time is up, if that is known. `age` is the run's; its earlier generations count for --timeout.
    /// `options` and `loop` must outlive this.
    run_deadlines(event_loop& loop, run_options const& options, std::optional<std::chrono::system_clock::time_point> ends_at,
                  duration age, supervision what);

    /// Starts the times of --timeout and --idle-timeout.
    void start();
    /// Schedules the signal of --signal-before-end; sends one that is due at once.
    void start_early_signal();
    /// Notes that a rank has written something, or that the ranks start only now.
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
