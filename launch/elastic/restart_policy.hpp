// The policy of restarts: whether another generation follows one that failed, when, and why not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace muster {

/// The kinds of a generation's end, as far as restarts matter.
enum class end_kind {
    last,   ///< success, the user, a time limit, the job's end, a fault of the start: another generation would not help
    rank,   ///< a rank failed
    node,   ///< a node is lost
    hosts,  ///< the ranks have saved after muster reported that hosts come or go
    other,  ///< what had started the ranks, or watched them, is lost
};
std::string_view to_string(end_kind kind) noexcept;

/// Describes how one generation ended. Times are in seconds; below 0: it did not get that far.
struct generation_end {
    int number = 0;
    end_kind kind = end_kind::last;
    int code = 0;
    std::string cause = {};
    int rank = -1;    ///< the first that failed; -1: none
    int member = -1;  ///< the first that failed; -1: none
    std::string host = {};
    std::vector<std::string> lost_hosts = {};
    std::vector<int> members = {};  ///< by rank
    std::string folder = {};        ///< the folder of its output; empty: it has no folder
    double start_s = -1;            ///< until its ranks were started
    double output_s = -1;           ///< from then until the first of them wrote something
    double metric_s = -1;           ///< from then until the first line with muster-metric:
    double lived_s = 0;             ///< from then until it failed
    double ending_s = 0;            ///< from then until no process was left
    double waited_s = -1;           ///< from then until the next generation began
    double at_s = 0;                ///< when it failed, on a clock that only goes forward
    std::int64_t saved_step = -1;   ///< of the first checkpoint that it told of; below 0: it told of none
    /// The sign that it got no further than earlier ones; empty: it did, or there is no sign.
    std::string standstill = {};
    bool advanced = false;      ///< a sure sign that it got further: a checkpoint of a later step, or what must grow has grown
    bool in_place = false;      ///< the remaining ranks went on, with their processes
    bool from_outside = false;  ///< the cause of its end says nothing against the program
    bool operator==(generation_end const&) const = default;
};

struct restart_policy {
    int most = 0;                              ///< --max-restarts
    std::vector<int> codes = {};               ///< --restart-on: exit codes, a signal's as 128 and its number
    std::optional<int> resets = std::nullopt;  ///< --reset-limit: the most generations after the first one, for any reason
    bool on_node = false;                      ///< --restart-on: a lost node; without codes and this, any failure
    bool operator==(restart_policy const&) const = default;
};

struct restart_decision {
    bool again = false;
    duration delay{0};
    std::string why = {};  ///< why none follows although a restart was possible; else empty
    bool operator==(restart_decision const&) const = default;
};

/// Returns the ends at which all ranks ended.
std::vector<generation_end> without_survived(std::span<generation_end const> ends);

/// `ends` are those of all generations, the latest last; those that were followed in place are ignored. `chance`, from 0 to 1,
/// spreads the delay between 0.75 and 1.25 of 0.2 s, which doubles with each generation that lived for less than a minute, up to
/// 30 s. No generation follows three failures of one kind and code within a minute, unless one came from outside or surely got
/// further, or two generations in a row that got no further. Pure.
restart_decision decide_restart(restart_policy const& policy, std::span<generation_end const> ends, double chance);

}  // namespace muster
