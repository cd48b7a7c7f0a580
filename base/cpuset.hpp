// A set of logical CPUs: reads and writes lists such as 0-3,8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Logical CPUs by the operating system's number, ascending and without repeats.
struct cpuset {
    std::vector<int> cpus;

    bool empty() const noexcept { return cpus.empty(); }
    bool contains(int cpu) const noexcept;
    void add(cpuset const& other);

    /// "0-3,8": the form of taskset, hwloc and the kernel. Empty for the empty set.
    std::string to_list() const;
    /// Reads that form. Throws parse_error.
    static cpuset from_list(std::string_view list, std::string_view origin = "cpu list");
    /// Does the same; returns the empty set for a text that is no such list.
    static cpuset from_list_or_none(std::string_view list);

    bool operator==(cpuset const&) const = default;
};

cpuset intersect(cpuset const& a, cpuset const& b);

/// Returns what this process may run on. Throws errc::system.
cpuset current_affinity();

}  // namespace muster
