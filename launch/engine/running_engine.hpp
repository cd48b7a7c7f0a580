// A running engine: one start of an engine's command, which starts processes of muster on nodes, and what it prints.
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

/// Used from the loop's thread. The loop must outlive it.
class running_engine {
  public:
    using exit_callback = std::function<void(running_engine&)>;
    using unreached_callback = std::function<void(running_engine const&, std::size_t slot, std::string const& why)>;

    /// Starts `command` for the processes of these numbers. `on_exit` is called once, from the loop, when the process and its
    /// output have ended; `on_unreached` for each of them that the engine reports before as not coming (unreached_host). Throws
    /// errc::system, program_error.
    running_engine(event_loop& loop, engine_command const& command, more_open_files const& files, std::vector<std::size_t> slots,
                   exit_callback on_exit, unreached_callback on_unreached);
    ~running_engine();
    running_engine(running_engine const&) = delete;
    running_engine& operator=(running_engine const&) = delete;

    std::vector<std::size_t> const& slots() const noexcept { return slots_; }
    bool brings(std::size_t slot) const noexcept;
    bool ended() const noexcept { return ended_; }
    int status() const noexcept { return status_; }  ///< from waitpid, once it has ended

    /// Returns ": " and what it printed about this node, else its last lines; two lines at most, empty if it printed nothing.
    std::string quote(std::string const& node) const;
    /// Returns ": " and the last four lines that name this node; empty if no line does.
    std::string quote_lines(std::string const& node) const;

    /// Signals its whole process group, even if that is stopped. Does nothing if it has ended.
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
    std::size_t read_ = 0;  ///< the number of bytes already looked at
    bool ended_ = false;
    int status_ = 0;
};

}  // namespace muster
