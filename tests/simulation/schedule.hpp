// A schedule: the simulated run and its faults, as a seed decides them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::simulation {

/// Small and fast; the same on all machines.
class dice {
  public:
    explicit dice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du) {}
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }
    int between(int least, int most) { return least + below(most - least + 1); }
    bool one_in(int n) { return below(n) == 0; }
    double seconds(double least, double most) { return least + (most - least) * static_cast<double>(next() >> 11) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

inline constexpr double script_limit_s = 30;  ///< for one call of the script that names hosts

struct fault {
    enum class kind {
        killed,        ///< the process dies; with `number` 1, just before or while it commits next
        stopped,       ///< for `lasts_s`; below 0: for ever
        departs,       ///< ends with 0
        computes,      ///< without any collective, for `lasts_s`
        collective,    ///< one of its collectives fails, and no rank is gone
        host_silent,   ///< nothing comes or goes, for `lasts_s`; below 0: for ever
        unkillable,    ///< a signal to end takes effect after `lasts_s` only
        hosts_change,  ///< discovery finds `number` slots, by bits of `host`
        replayed,      ///< a message of this rank comes once more, late; or one to it
        execs,         ///< the rank's program starts another one: a second hello
        // Of runs that keep states:
        fails,  ///< by its own program
        keeper_killed,
        keeper_stopped,  ///< for `lasts_s`; below 0: for ever
        leader_killed,
        leader_stopped,
        cut,          ///< the next copy from this host does not arrive
        memory_full,  ///< no copy finds room on this host, for `lasts_s`
        slow,         ///< copies take long, for `lasts_s`
        no_start,     ///< no keeper can be started on this host, for `lasts_s`
        // Of the script that names hosts:
        script_fails,    ///< each call, for `lasts_s`
        script_hangs,    ///< the next call, which is ended after 30 s
        script_killed,   ///< the process that calls it
        script_stopped,  ///< that process, for `lasts_s`; below 0: for ever
        count_,
    };
    kind what = kind::killed;
    double at_s = 0;
    int whom = 0;  ///< a seat, or a host
    double lasts_s = -1;
    int number = 0;
};

struct schedule {
    std::uint64_t seed = 0;
    int ranks = 3, hosts = 1, least = 1, spares = 0, warm_spares = 0, most = 3, resets = -1;
    bool by_hosts = false, announces_late = false, over_nodes = false;
    bool in_job = false;           ///< a scheduler may have sent the signal that ended a rank, and is asked
    bool without_handler = false;  ///< the program has announced that it goes on without lost ranks, and does not
    bool watches_stops = false;    ///< the supervisor kills who stays stopped; it spares those that a debugger has stopped
    double comm_deadline_s = 30, newcomer_limit_s = 60;
    // of kept states and restarts
    bool keeps = false, to_neighbours = false, never_announces = false;
    bool by_number = false;  ///< the program keeps by its own numbers, and spreads nothing (muster.kept)
    int restarts = 0, spare_hosts = 0;
    double step_s = 0.2;  ///< the longest from commit to commit
    std::vector<fault> faults;
};

/// Ranks that go on in place.
schedule draw_schedule(std::uint64_t seed);
/// Ranks that keep states, start again, and mostly go on in place, too.
schedule draw_kept_schedule(std::uint64_t seed);
std::string describe(schedule const& of);
std::string describe(fault const& one);

}  // namespace muster::simulation
