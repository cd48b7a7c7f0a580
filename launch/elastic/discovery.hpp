// Discovers hosts by a script: runs it every second, in another process, and reports changes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "launch/elastic/host_pool.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Holds the result of one run of the script.
struct discovery_answer {
    std::vector<pool_host> hosts = {};
    std::string fault = {};  ///< what went wrong, in words; empty: nothing
    bool is_last = false;    ///< the process that asks has ended

    /// Returns the fault with `advice` after its first line: the line with a caret that may follow ends the message.
    std::string fault_with(std::string_view advice) const;
    bool operator==(discovery_answer const&) const = default;
};

/// The options of --host-discovery-script.
struct discovery_script {
    std::string command;  ///< an executable file, or else a command of the shell; empty: no script
    int slots = 1;        ///< for hosts that it names without slots
    bool operator==(discovery_script const&) const = default;

    bool given() const noexcept { return !command.empty(); }
};

/// Parses what a discovery script printed: "host" or "host:slots" on each line. A host without slots has `slots`. A host named
/// twice counts once, with the larger number; one with 0 slots does not count. Skips blank lines; no line means no hosts. Throws
/// parse_error with a caret. Pure.
std::vector<pool_host> parse_discovered(std::string_view text, int slots);

/// Runs the script once. It gets no input, may print 1 MiB, and has 30 s; then it and its process group are killed. Whatever the
/// script does, this does not throw.
discovery_answer ask_hosts(discovery_script const& script, environment const& variables);

/// Runs the script again and again in a child process, which ends with this one. Used from one thread.
class discovery {
  public:
    /// Starts the process, which waits for `pause` before each further run. Call it before this process has other threads. Throws
    /// errc::system.
    discovery(discovery_script const& script, environment const& variables, duration pause = duration(1));
    ~discovery() {
        loop_ = nullptr;  // the loop may have been destroyed
        stop();
    }
    discovery(discovery const&) = delete;
    discovery& operator=(discovery const&) = delete;

    /// Calls `take` in the loop with each answer that differs from the previous one, until stop().
    void watch(event_loop& loop, std::function<void(discovery_answer const&)> take);
    /// Kills the process and everything that the script has left in its group. May be called again.
    void stop() noexcept;

  private:
    void read(std::function<void(discovery_answer const&)> const& take);

    unique_fd answers_;
    pid_t child_ = -1;
    std::string received_;
    event_loop* loop_ = nullptr;
};

}  // namespace muster
