// Judges how a run ends: who or what is to blame according to the evidence, and with which exit code the run ends.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "launch/elastic/restart_policy.hpp"
#include "launch/watch/evidence.hpp"
#include "launch/watch/failure_report.hpp"

namespace muster {

/// Names what has gone wrong.
enum class failure_cause {
    none,
    rank_end,     ///< a rank's program has ended badly
    abort,        ///< a rank has requested the end of all
    left_world,   ///< a rank has left its MPI world without MPI_Finalize
    singleton,    ///< a rank has not come to the world of the others
    job_end,      ///< the scheduler ends the job
    node,         ///< a node is lost
    engine,       ///< the engine has died, or has ended the ranks
    daemon,       ///< a daemon of the engine has died
    watcher,      ///< a rank's watcher was killed, or does not answer
    never_came,   ///< ranks have not come
    reader_gone,  ///< nobody reads the output
    output,       ///< the output could not be written
};

/// A rank that is to blame, or that is lost.
struct culprit {
    int rank = 0;
    std::string host;
    bool operator==(culprit const&) const = default;
};

/// Holds the judge's decision about the evidence.
struct verdict {
    enum class step {
        go_on,          ///< nothing is wrong
        hold,           ///< `culprits` names suspects; judge_cause decides after `patience`
        ask_scheduler,  ///< judge_cause needs the scheduler's answer first
        end,            ///< the run ends as the fields below say
    };
    step next = step::go_on;
    duration patience{0};
    failure_cause cause = failure_cause::none;
    int exit_code = 0;
    std::vector<culprit> culprits;
    bool of_rank = false;   ///< the first culprit itself has caused it
    bool gives_up = false;  ///< the culprits are no longer awaited
    std::string text;       ///< for the user, without "error: "; empty: no message

    bool operator==(verdict const&) const = default;
    bool ends() const noexcept { return next == step::end; }
    bool blames(int rank) const {
        return std::any_of(culprits.begin(), culprits.end(), [rank](culprit const& one) { return one.rank == rank; });
    }
    std::vector<int> ranks_to_blame() const {
        std::vector<int> ranks;
        for (auto const& one : culprits) ranks.push_back(one.rank);
        return ranks;
    }
};

// All of these are pure. `known` is the evidence at that moment; none is called once the run ends.

/// The program of `rank` has ended.
verdict judge_end(evidence const& known, int rank);

/// Decides on what was held: something has ended ranks, or asked them to end. Goes from the most certain evidence to the least.
verdict judge_cause(evidence const& known);

/// A rank has met its world, has left it, or has ended well: decides whether others wait for one that ended.
verdict judge_world(evidence const& known);

/// The engine has ended, and its watchers' messages have been read.
verdict judge_engine_end(evidence const& known);

/// The engine has ended by itself after all ranks.
verdict judge_late_engine(evidence const& known);

/// `silent`, in order, have not answered for `time`, and others have.
verdict judge_silence(evidence const& known, std::vector<int> const& silent, duration time);

/// The agent that has started the watcher of `rank` has not answered for `time`.
verdict judge_silent_agent(evidence const& known, int rank, duration time);

/// SIGTERM has come to the launcher, and the scheduler was asked for the reason. Returns the reason, if it is known; the code is
/// 0 if the signal's code applies.
verdict explain_request_to_end(evidence const& known);

/// Blames one rank for a failure that its watcher has seen itself. `advice`: one thing to do, or empty.
verdict blame_rank(evidence const& known, int rank, failure_cause cause, std::string const& what, int exit_code,
                   std::string_view advice = {});

/// Returns what a verdict means for a restart: only a failure that other processes or nodes may avoid counts, and a failed start
/// of the ranks only in a later generation (`first`: this is the run's first one).
end_kind kind_of_end(verdict const& judged, evidence const& known, bool first);

/// Returns whether the cause lies outside the program.
bool is_from_outside(failure_cause cause) noexcept;
/// Returns whether somebody else may have killed the rank: a preemption or an out-of-memory daemon sends such signals. A kill at
/// the limit of that rank's memory cgroup is the program's fault.
bool is_from_outside(rank_evidence const& rank) noexcept;

/// Returns what is wrong with the end of a rank's program; nothing if it has ended well, or has not ended.
std::optional<end_fault> fault_of(rank_evidence const& rank);
/// Returns whether the end may be due to another rank: it had been asked to end, MPI has ended it because others were gone, or
/// its last lines say so.
bool follows(rank_evidence const& rank);

/// Returns a failure due to the present ranks that no longer answer, as their host is lost; nothing if all answer.
std::optional<verdict> blame_lost(evidence const& known);

/// Returns a failure without a culprit among the ranks.
verdict blame_run(failure_cause cause, std::string text, int exit_code);

/// Returns the verdict on an agent of the engine remote that was lost before all ranks had come.
verdict blame_agent(evidence const& known, int rank);

/// Blames a stopped rank in a run that cannot go on, if the blamed rank waited for it in vain. Pure.
verdict blame_stopped_instead(evidence const& known, verdict judged);

}  // namespace muster
