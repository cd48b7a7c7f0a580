// The discovery of hosts by a script: runs it every second, in another process, and tells of changes.
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

/// What one run of the script came to.
struct discovery_answer {
    std::vector<pool_host> hosts = {};
    std::string fault = {};  ///< what went wrong, in words; empty: nothing

    /// The fault, and behind its first line `advice`: the line with a caret that may follow ends the message.
    std::string fault_with(std::string_view advice) const;
    bool operator==(discovery_answer const&) const = default;
};

/// --host-discovery-script.
struct discovery_script {
    std::string command;  ///< an executable file, or else a command of the shell; empty: there is none
    int slots = 1;        ///< of hosts that it names without slots
    bool operator==(discovery_script const&) const = default;

    bool given() const noexcept { return !command.empty(); }
};

/// What a discovery script printed: "host" or "host:slots" a line. A host without slots has `slots`. One that is named twice counts once, with the larger
/// number; one with 0 slots is none. Blank lines are passed over; no line means no hosts. Throws parse_error with a caret. Pure.
std::vector<pool_host> parse_discovered(std::string_view text, int slots);

/// Runs it once. It gets no input, prints 1 MiB at most, and has 30 s; then it and its process group are killed. Never throws for what it does.
discovery_answer ask_hosts(discovery_script const& script, environment const& variables);

/// Runs the script again and again in a child process, which ends with this one. Single-threaded.
class discovery {
  public:
    /// Makes the process, which waits for `pause` before each further question. Call it before this process has other threads. Throws errc::system.
    discovery(discovery_script const& script, environment const& variables, duration pause = duration(1));
    ~discovery() {
        loop_ = nullptr;  // which may be gone
        stop();
    }
    discovery(discovery const&) = delete;
    discovery& operator=(discovery const&) = delete;

    /// `take` gets each answer that differs from the one before, in the loop, until stop().
    void watch(event_loop& loop, std::function<void(discovery_answer const&)> take);
    /// Kills the process with all that the script has left in its group. May be called again.
    void stop() noexcept;

  private:
    void read(std::function<void(discovery_answer const&)> const& take);

    unique_fd answers_;
    pid_t child_ = -1;
    std::string received_;
    event_loop* loop_ = nullptr;
};

}  // namespace muster
