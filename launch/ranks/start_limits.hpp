// The limits of this machine that many ranks can reach, read and checked before any rank starts.
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

/// Returns the soft limits of this process, as setrlimit counts them, and its umask. Not thread-safe: reading the umask sets it
/// for a moment.
std::vector<soft_limit> read_own_limits();
int read_umask();

/// Holds limits; a missing or unknown one has the largest number.
struct start_limits {
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t open_files = none;         ///< the launcher's
    std::uint64_t processes_of_user = none;  ///< ulimit -u; root has none
    std::uint64_t processes = none;          ///< the machine's: kernel.pid_max, kernel.threads-max
    std::uint64_t processes_of_job = none;   ///< what the control groups (pids.max) leave
};

/// Returns the limits of this process. An unreadable limit counts as missing.
start_limits read_start_limits();

/// Returns how many processes the control groups of a process leave: `cgroups` is the text of /proc/self/cgroup, `root` where
/// they are mounted (/sys/fs/cgroup).
std::uint64_t processes_left_in_cgroups(std::string_view cgroups, std::string const& root);

/// Returns what prevents the start of `ranks` ranks on one node, for each of which the launcher holds `files_a_rank` open files;
/// nothing if they can start. Pure.
std::optional<std::string> limit_fault(int ranks, int files_a_rank, start_limits const& limits);

}  // namespace muster
