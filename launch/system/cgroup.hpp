// Finds the cgroup of this process in the file system, and the CPUs that its quota allows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// A process' cgroup of one controller.
struct cgroup_place {
    std::string root;    ///< where its hierarchy is mounted
    std::string folder;  ///< its own folder, the root or below it
    bool first_version = false;
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

}  // namespace muster
