// The policy of restarts: whether a generation that failed is followed by another, when, and why not.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace muster {

/// What a generation ended by, as far as restarts go.
enum class end_kind {
    last,   ///< success, the user, a time limit, the job's end, a fault of the start: nothing that another generation would mend
    rank,   ///< a rank failed
    node,   ///< a node is lost
    hosts,  ///< the ranks have saved, as they were told that hosts come or go
    other,  ///< what had started the ranks, or watched them, is lost
};
std::string_view to_string(end_kind kind) noexcept;

/// How one generation ended. Times are in seconds; below 0: it did not come to that.
struct generation_end {
    int number = 0;
    end_kind kind = end_kind::last;
    int code = 0;
    std::string cause = {};
    int rank = -1;    ///< that failed first; -1: none
    int member = -1;  ///< the same
    std::string host = {};
    std::vector<std::string> lost_hosts = {};
    std::vector<int> members = {};  ///< by rank
    std::string folder = {};        ///< where its output is; empty: nowhere
    double start_s = -1;            ///< until its ranks were started
    double output_s = -1;           ///< from there until the first of them wrote something
    double metric_s = -1;           ///< the same, a line with muster-metric:
    double lived_s = 0;             ///< from there until it failed
    double ending_s = 0;            ///< from there until none was left
    double waited_s = -1;           ///< from there until the next generation began
    double at_s = 0;                ///< when it failed, on a clock that only goes forward
    /// What shows that it came no further than those before it; empty: it did, or nothing shows it.
    std::string standstill = {};
    bool in_place = false;      ///< those that were left went on, with their processes
    bool from_outside = false;  ///< what ended it is no sign against the program
    bool operator==(generation_end const&) const = default;
};

struct restart_policy {
    int most = 0;                              ///< --max-restarts
    std::vector<int> codes = {};               ///< --restart-on: exit codes, a signal's as 128 and its number
    std::optional<int> resets = std::nullopt;  ///< --reset-limit: generations after the first one, for whatever reason
    bool on_node = false;                      ///< the same: a lost node. Neither: whatever failed
    bool operator==(restart_policy const&) const = default;
};

struct restart_decision {
    bool again = false;
    duration delay{0};
    std::string why = {};  ///< why not, where a restart was possible; else empty
    bool operator==(restart_decision const&) const = default;
};

/// Those that all ranks ended with.
std::vector<generation_end> without_survived(std::span<generation_end const> ends);

/// `ends`: of all generations, the latest last; those that were followed in place count for nothing. `chance`, from 0 to 1, spreads the delay between 0.75 and 1.25 of 0.2 s, which doubles with each
/// generation that lived for less than a minute, up to 30 s. Three failures of one kind and code within a minute are the last ones, unless one came from outside, and so are two
/// generations in a row that came no further. Pure.
restart_decision decide_restart(restart_policy const& policy, std::span<generation_end const> ends, double chance);

}  // namespace muster
