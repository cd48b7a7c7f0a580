// The process of an engine, which has started the shims and lives as long as they do.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/run/stdin_forwarder.hpp"
#include "launch/scheduler/slurm/step_end.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/open_files.hpp"

namespace muster {

/// Starts and watches the engine, and ends it together with what it started elsewhere. Used from the loop's thread.
class engine_process {
  public:
    /// `say` and `pass_on` print for the user; `pass_on` gets whole lines as they are. All arguments must outlive it.
    engine_process(event_loop& loop, engine_row const& engine, std::function<void(std::string const&)> say,
                   std::function<void(std::string)> pass_on)
        : loop_(loop), engine_(engine), say_(std::move(say)), pass_on_(std::move(pass_on)), input_(loop) {}

    /// `by_srun`: reads what the engine, an srun or one that has started its daemons by srun, prints before passing it on, since
    /// Slurm reports a cancelled step there. Throws errc::system, and program_error if there is no such program.
    void start(engine_command const& command, std::size_t connections, bool by_srun);
    /// Reads and passes on what it has printed so far.
    void hear();
    /// Returns the step that was cancelled according to its output; empty: no step was.
    std::string const& cancelled_step() const noexcept { return heard_.cancelled(); }
    /// Notes that a child has ended; returns whether it was the engine.
    bool take(pid_t pid, int status);

    bool running() const noexcept { return !status_; }
    std::optional<int> status() const noexcept { return status_; }
    /// Returns whether muster ended it, so that its code says nothing.
    bool was_ended() const noexcept { return was_ended_; }

    /// Ends it, with SIGKILL after SIGTERM. What it started may outlive it: on nodes that do not answer, the scheduler itself
    /// ends the step.
    void end(int signal_number, std::string const& step);
    /// Waits for the command that ends the step: it dies with this process, and a scheduler may answer it slowly.
    void wait_for_cancel();

  private:
    void cancel(std::string const& step);

    event_loop& loop_;
    engine_row const& engine_;
    std::function<void(std::string const&)> say_;
    std::function<void(std::string)> pass_on_;
    unique_fd words_;  ///< the read end of the pipe that is its standard error
    step_words heard_;
    std::string unended_;  ///< the beginning of a line
    stdin_forwarder input_;
    std::optional<more_open_files> files_;
    pid_t pid_ = -1;
    std::optional<int> status_;
    bool was_ended_ = false;
    bool cancelled_ = false;
    pid_t cancel_pid_ = -1;
};

}  // namespace muster
