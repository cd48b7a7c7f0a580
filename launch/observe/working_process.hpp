// Finds the process of a rank that works, and with few reads: who is stopped is asked of every rank every few seconds.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace muster {

/// The rank's process, or below a script that does nothing but wait for its one child, that child. `children`: those that live.
pid_t working_process(pid_t rank, std::function<std::vector<pid_t>(pid_t)> const& children);

/// One short look at ranks of this machine. It reads only their own processes, and children of scripts that wait; where the kernel lists no children
/// (CONFIG_PROC_CHILDREN) it reads all processes, once, for the first such script. One thread.
class brief_look {
  public:
    pid_t working_process(pid_t rank);
    /// Another process of the rank that is stopped is the program's own affair.
    bool is_stopped(pid_t rank);

  private:
    std::vector<pid_t> children_of(pid_t parent);
    std::optional<std::multimap<pid_t, pid_t>> all_;  ///< children by parent, once read
};

}  // namespace muster
