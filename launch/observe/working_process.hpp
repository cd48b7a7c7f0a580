// Finds the process of a rank that works, with few reads: every few seconds all ranks are checked for stopped ones.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster {

/// An uninterruptible wait of a process, as for a file system or a driver.
struct blocked_wait {
    std::uint64_t number = 0;  ///< of its waits so far
    std::string where;         ///< system call or kernel function; or empty
    bool operator==(blocked_wait const&) const = default;
};

/// Returns the rank's process or, for a script that only waits for its one child, that child. `children` returns living ones.
pid_t working_process(pid_t rank, std::function<std::vector<pid_t>(pid_t)> const& children);

/// One short look at ranks of this machine. It reads only their own processes, and children of scripts that wait; if the kernel
/// lists no children (CONFIG_PROC_CHILDREN) it reads all processes, once, for the first such script. Single-threaded.
class brief_look {
  public:
    pid_t working_process(pid_t rank);
    /// Returns whether the working process is stopped, or in a frozen cgroup. Another stopped process of the rank is the program's own business.
    bool is_stopped(pid_t rank);
    /// Returns the uninterruptible wait in which the working process is, if it is in one.
    std::optional<blocked_wait> find_blocked(pid_t rank);
    /// Returns its living children.
    std::vector<pid_t> const& children_of(pid_t parent);
    /// Returns the rank and the living processes below it, 4096 at most or a few more.
    std::vector<pid_t> tree_of(pid_t rank);

  private:
    std::map<pid_t, std::vector<pid_t>> children_;  ///< by parent, as far as they were read
};

}  // namespace muster
