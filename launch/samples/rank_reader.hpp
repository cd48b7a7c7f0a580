// Reads what a rank does from outside: its processes in /proc, and the cgroup that limits them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/samples/run_samples.hpp"

namespace muster {

/// A rank to look at: its process, its number (in a run that may go on in place, that at the start), and what only the process that reads its output knows:
/// GPU, output, metric, and waits as its page says.
using sampled_rank = rank_sample;

/// Returns the second number of the text of /proc/PID/schedstat, in seconds: how long a thread wanted to run and did not; nothing for any other text. Pure.
std::optional<double> parse_core_wait(std::string_view text);

/// A cgroup's figures, and the counts from which the next look tells a share.
struct cgroup_counts {
    cgroup_sample sample;
    std::optional<std::uint64_t> periods;  ///< of its quota of processor time; absent: it has none
    std::uint64_t throttled_periods = 0;
    bool operator==(cgroup_counts const&) const = default;
};

/// Returns the figures of the cgroups with these texts of /proc/PID/cgroup and /proc/PID/mountinfo: processor time and memory of the nearest cgroup, at or
/// above the process', that limits them. `read` returns a file's text, "" if it is missing. Pure.
cgroup_counts read_cgroup(std::string_view cgroup, std::string_view mountinfo,
                          std::function<std::string(std::string const& path)> const& read);

/// The time that a rank had waited at one look.
struct wait_mark {
    double age_s = 0;
    double waited_s = 0;
};

/// Sets the share of the time that the rank waited since the first of these marks, if there is one. Steps of some seconds, and ranks that share cores, would
/// make that of a single look jump. Adds a mark, and drops the oldest of more than 5. Pure.
void add_waiting(rank_sample& now, std::deque<wait_mark>& marks);

/// Sets rates and the highest value, from the look before at the same rank; without one, from its start. Pure.
void add_rates(rank_sample& now, rank_sample const* before);

/// Looks at ranks again and again. It reads only their own processes; what it reads may be behind a lock of the kernel that a file system holds, so do not use
/// it on the thread of an event loop. Single-threaded.
class rank_reader {
  public:
    /// Returns the samples of those that run, in the given order. Forgets all others.
    std::vector<rank_sample> read(std::vector<sampled_rank> const& ranks);

  private:
    struct last_look {
        std::uint64_t start_ticks = 0;  ///< of the process: another one may get its number
        rank_sample sample;
        cgroup_counts limits, limits_at_first;
        std::deque<wait_mark> waits;  ///< those of the last looks
    };
    std::map<int, last_look> last_;  ///< by rank
    std::string mounts_;             ///< this process' mountinfo, read once
};

}  // namespace muster
