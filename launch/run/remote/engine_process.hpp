// The process of an engine, which started the shims and lives as long as they do.
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

/// Started, watched, and ended together with what it started elsewhere. Used from the loop's thread.
class engine_process {
  public:
    /// `say` is for the user, and so is `pass_on`, which gets whole lines as they are. All must outlive it.
    engine_process(event_loop& loop, engine_row const& engine, std::function<void(std::string const&)> say,
                   std::function<void(std::string)> pass_on)
        : loop_(loop), engine_(engine), say_(std::move(say)), pass_on_(std::move(pass_on)), input_(loop) {}

    /// `by_srun`: what it prints is read on its way, since Slurm tells there of a step that is cancelled. Throws errc::system, program_error if there is no such program.
    void start(engine_command const& command, std::size_t connections, bool by_srun);
    /// Reads and passes on what it has printed until now.
    void hear();
    /// The step that was cancelled, by what it has printed; empty: none.
    std::string const& cancelled_step() const noexcept { return heard_.cancelled(); }
    /// A child has ended: true if it was the engine.
    bool take(pid_t pid, int status);

    bool running() const noexcept { return !status_; }
    std::optional<int> status() const noexcept { return status_; }
    /// It ends because we told it to: its code says nothing.
    bool was_ended() const noexcept { return was_ended_; }

    /// What it started may outlive it: on nodes that do not answer, the scheduler itself ends the step. SIGKILL follows SIGTERM.
    void end(int signal_number, std::string const& step);
    /// The command that ends the step dies with this process, and a scheduler may be slow to answer it.
    void wait_for_cancel();

  private:
    void cancel(std::string const& step);

    event_loop& loop_;
    engine_row const& engine_;
    std::function<void(std::string const&)> say_;
    std::function<void(std::string)> pass_on_;
    unique_fd words_;  ///< the end of the pipe that is its standard error
    step_words heard_;
    std::string unended_;  ///< of a line
    stdin_forwarder input_;
    std::optional<more_open_files> files_;
    pid_t pid_ = -1;
    std::optional<int> status_;
    bool was_ended_ = false;
    bool cancelled_ = false;
    pid_t cancel_pid_ = -1;
};

}  // namespace muster
