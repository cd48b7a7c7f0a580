// The hosts of a remote start and their ranks, as lines of a file and as agents get them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The list of hosts of a start by the engine remote, in the folder of the run.
inline constexpr std::string_view hosts_file_name = "remote.hosts";

/// One host of a run.
struct host_ranks {
    std::string name;        ///< as the remote shell takes it
    std::vector<int> ranks;  ///< in order of local rank
    bool here = false;       ///< the host that the launcher is on: no remote shell is needed
    bool spare = false;      ///< these are no ranks yet: they wait for the places of lost ones
    bool operator==(host_ranks const&) const = default;
};

/// A line a host: "node1 0-3", and "here" and "spare" behind it. Pure.
std::string to_lines(std::vector<host_ranks> const& hosts);

/// Where a start that uses this file leaves the name of the host that kept it from coming about.
inline std::string blame_file(std::string const& hosts_file) {
    return hosts_file + ".blamed";
}

/// Reads that. Pure. Throws parse_error naming `origin`.
std::vector<host_ranks> parse_host_ranks(std::string_view text, std::string_view origin);

/// The numbers of "0-3,8", ascending and without repeats. Pure. Throws parse_error naming `origin`, also for more than 16 million of them.
std::vector<int> parse_numbers(std::string_view list, std::string_view origin);

/// The ranks of each host in few numbers: runs of {hosts, first, ranks, step, shift}. The first host of a run has `ranks` ranks, `first` and
/// then each `step` later; each host after it has the same, `shift` later. A run of 0 hosts goes on with the last host. Ranks that fill
/// host after host, or are dealt out one a host, are one or two runs. Pure.
std::vector<int> pack_ranks(std::vector<std::vector<int>> const& ranks_of_hosts);

/// Reads that, of `hosts` hosts with ranks below `world_size`. Pure. Throws errc::invalid_data for anything else.
std::vector<std::vector<int>> unpack_ranks(std::vector<int> const& runs, std::size_t hosts, int world_size);

/// The number of their ranks, and of those that others have been asked to start before.
int count_ranks(std::vector<host_ranks> const& hosts) noexcept;

}  // namespace muster
