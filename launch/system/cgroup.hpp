// Finds the cgroup of a process in the file system, the CPUs that its quota allows, and whether it is frozen.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A process' cgroup of one controller.
struct cgroup_place {
    std::string root;    ///< where its hierarchy is mounted
    std::string folder;  ///< its own folder, the root or below it
    bool first_version = false;

    /// Returns its own folder and those above it, up to the root.
    std::vector<std::string> folders() const;
};

/// Reads the texts of /proc/PID/cgroup and /proc/PID/mountinfo; `controller` is such as "memory". Returns nothing if the process
/// is in no cgroup, or its hierarchy is not mounted. Pure.
std::optional<cgroup_place> find_cgroup(std::string_view cgroup, std::string_view mountinfo, std::string_view controller);

/// Returns how many CPUs' time the processes of the cgroup may use: the least quota of it and of those above it (cpu.max of
/// cgroup v2, cpu.cfs_quota_us of v1), rounded up. `read` returns a file's text, "" if it is missing. Returns nothing without a
/// quota. Pure.
std::optional<int> find_cpu_quota(cgroup_place const& place, std::function<std::string(std::string const& path)> const& read);

/// Returns the quota of this process.
std::optional<int> own_cpu_quota();

/// The files that tell whether the cgroups with this text of /proc/PID/cgroup are frozen: freezer.state (version 1), cgroup.events (version 2). A machine may
/// have both. Pure.
std::vector<std::string> freezer_files(std::string_view cgroup, std::string_view mountinfo);

/// Returns whether the text of such a file says that all processes of the cgroup are frozen, by itself or by a cgroup above it. Pure.
bool says_frozen(std::string_view text);

/// Returns whether the process is in a frozen cgroup; false if there is no such process, or if it is in the same cgroups as this one, which runs.
bool is_frozen(pid_t pid);

}  // namespace muster
