// A running engine: one start of an engine's command, which brings processes of muster to nodes, and what it prints.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/open_files.hpp"

namespace muster {

/// Used from the loop's thread, which must not outlive it.
class running_engine {
  public:
    using exit_callback = std::function<void(running_engine&)>;
    using unreached_callback = std::function<void(running_engine const&, std::size_t slot, std::string const& why)>;

    /// Starts `command` for the processes of these numbers. `on_exit` is called once, from the loop, when the process has ended and
    /// so has its output; `on_unreached` for each of them of which the engine says before that it will not come (unreached_host). Throws
    /// errc::system, program_error.
    running_engine(event_loop& loop, engine_command const& command, more_open_files const& files, std::vector<std::size_t> slots,
                   exit_callback on_exit, unreached_callback on_unreached);
    ~running_engine();
    running_engine(running_engine const&) = delete;
    running_engine& operator=(running_engine const&) = delete;

    std::vector<std::size_t> const& slots() const noexcept { return slots_; }
    bool brings(std::size_t slot) const noexcept;
    bool ended() const noexcept { return ended_; }
    int status() const noexcept { return status_; }  ///< of waitpid, once it has ended

    /// ": " and what it printed about this node, else its last lines; two lines at most, empty if it printed nothing.
    std::string quote(std::string const& node) const;
    /// ": " and the lines that name this node, the last four; empty if no line does.
    std::string quote_lines(std::string const& node) const;

    /// To its whole process group, also if that is stopped. Nothing if it has ended.
    void kill(int signal_number) const;

  private:
    void on_output();
    void take_unreached();
    void reap();

    event_loop& loop_;
    std::vector<std::size_t> slots_;
    exit_callback on_exit_;
    unreached_callback on_unreached_;
    pid_t pid_ = -1;
    unique_fd output_;
    std::string said_;
    std::size_t read_ = 0;  ///< so many bytes of it have been looked at
    bool ended_ = false;
    int status_ = 0;
};

}  // namespace muster
