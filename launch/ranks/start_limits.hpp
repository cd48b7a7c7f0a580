// The limits of this machine that a number of ranks can run into, read and compared before any is started.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/process.hpp"

namespace muster {

// The umask and the limits of this process, read for ranks on other nodes.

/// The soft limits of this process, as setrlimit counts them, and its umask. Not thread-safe: to be read, the umask is set for a
/// moment.
std::vector<soft_limit> read_own_limits();
int read_umask();

/// What is not limited, or not known, has the largest number.
struct start_limits {
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t open_files = none;         ///< of the launcher
    std::uint64_t processes_of_user = none;  ///< ulimit -u; root has none
    std::uint64_t processes = none;          ///< of the machine: kernel.pid_max, kernel.threads-max
    std::uint64_t processes_of_job = none;   ///< what the control groups (pids.max) leave
};

/// The limits of this process. What cannot be read counts as not limited.
start_limits read_start_limits();

/// What the control groups of a process leave of processes: `cgroups` is the text of /proc/self/cgroup, `root` where they are
/// mounted (/sys/fs/cgroup).
std::uint64_t processes_left_in_cgroups(std::string_view cgroups, std::string const& root);

/// What stands against starting `ranks` ranks on one node, for each of which the launcher holds `files_a_rank` open files; nothing
/// if nothing does. Pure.
std::optional<std::string> limit_fault(int ranks, int files_a_rank, start_limits const& limits);

}  // namespace muster
