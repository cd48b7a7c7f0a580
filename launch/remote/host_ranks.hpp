// The hosts of a remote start and their ranks, as lines of a file and in the form that agents get.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The list of hosts for a start by the engine remote, in the folder of the run.
inline constexpr std::string_view hosts_file_name = "remote.hosts";

/// One host of a run.
struct host_ranks {
    std::string name;        ///< the name for the remote shell
    std::vector<int> ranks;  ///< in order of local rank
    bool here = false;       ///< the launcher's host, which needs no remote shell
    bool spare = false;      ///< these are not ranks yet: they wait for the places of lost ones
    bool operator==(host_ranks const&) const = default;
};

/// Returns a line for each host: "node1 0-3", followed by "here" and "spare". Pure.
std::string to_lines(std::vector<host_ranks> const& hosts);

/// Returns the file in which a start that uses this file leaves the name of the host that prevented it.
inline std::string blame_file(std::string const& hosts_file) {
    return hosts_file + ".blamed";
}

/// Reads those lines. Pure. Throws parse_error naming `origin`.
std::vector<host_ranks> parse_host_ranks(std::string_view text, std::string_view origin);

/// Returns the numbers of "0-3,8", ascending and without repeats. Pure. Throws parse_error naming `origin`, also for more than 16
/// million of them.
std::vector<int> parse_numbers(std::string_view list, std::string_view origin);

/// Returns the ranks of each host in few numbers: runs of {hosts, first, ranks, step, shift}. The first host of a run has `ranks`
/// ranks, `first` and then each `step` later; each host after it has the same, `shift` later. A run of 0 hosts continues with the
/// last host. Ranks that fill host after host, or go to the hosts in turn, make one or two runs. Pure.
std::vector<int> pack_ranks(std::vector<std::vector<int>> const& ranks_of_hosts);

/// Reads those numbers, for `hosts` hosts with ranks below `world_size`. Pure. Throws errc::invalid_data for anything else.
std::vector<std::vector<int>> unpack_ranks(std::vector<int> const& runs, std::size_t hosts, int world_size);

/// Returns the number of their ranks, including those that other starters were asked to start before.
int count_ranks(std::vector<host_ranks> const& hosts) noexcept;

}  // namespace muster
