// The hosts of a remote start and their ranks, as lines of a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// One host of a run.
struct host_ranks {
    std::string name;        ///< as the remote shell takes it
    std::vector<int> ranks;  ///< in order of local rank
    bool here = false;       ///< the host that the launcher is on: no remote shell is needed
    bool operator==(host_ranks const&) const = default;
};

/// A line a host: "node1 0-3", and "here" behind it. Pure.
std::string to_lines(std::vector<host_ranks> const& hosts);

/// Reads that. Pure. Throws parse_error naming `origin`.
std::vector<host_ranks> parse_host_ranks(std::string_view text, std::string_view origin);

/// The number of their ranks.
int count_ranks(std::vector<host_ranks> const& hosts) noexcept;

}  // namespace muster
