// Judges how a run ends: from what is known of its ranks, who or what is to blame, and with which exit code.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "launch/elastic/restart_policy.hpp"
#include "launch/watch/evidence.hpp"

namespace muster {

/// What has gone wrong.
enum class failure_cause {
    none,
    rank_end,     ///< a rank's program has ended badly
    abort,        ///< a rank has asked for the end of all
    left_world,   ///< a rank has left its MPI world without MPI_Finalize
    singleton,    ///< a rank has not come to the world of the others
    job_end,      ///< the scheduler ends the job
    node,         ///< a node is lost
    engine,       ///< the engine has died, or has ended the ranks
    daemon,       ///< a daemon of the engine has died
    watcher,      ///< a rank's watcher was killed, or does not answer
    never_came,   ///< ranks have not come up
    reader_gone,  ///< nobody reads the output
    output,       ///< it could not be written
};

/// A rank that is to blame, or that is lost.
struct culprit {
    int rank = 0;
    std::string host;
    bool operator==(culprit const&) const = default;
};

/// What the judge says of the evidence.
struct verdict {
    enum class step {
        go_on,          ///< nothing is wrong
        hold,           ///< whoever `culprits` names is the suspect; to be decided after `patience`, by judge_cause
        ask_scheduler,  ///< its word is needed first, for judge_cause
        end,            ///< the run ends, with all that stands below
    };
    step next = step::go_on;
    duration patience{0};
    failure_cause cause = failure_cause::none;
    int exit_code = 0;
    std::vector<culprit> culprits;
    bool of_rank = false;   ///< a rank's own doing: the first culprit's
    bool gives_up = false;  ///< nobody waits for the culprits any more
    std::string text;       ///< for the user, without "error: "; empty: no message

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

// All of these are pure. `known` is what was known at that moment; none is asked once the run ends.

/// The program of `rank` has ended.
verdict judge_end(evidence const& known, int rank);

/// What is held is decided: something has ended ranks, or asked them to end. Who it was, the surest word first.
verdict judge_cause(evidence const& known);

/// A rank has met its world, has left it, or has ended well: whether others wait for one that ended.
verdict judge_world(evidence const& known);

/// The engine has ended, and what its watchers had told has been heard.
verdict judge_engine_end(evidence const& known);

/// The engine has ended behind all ranks, and by itself.
verdict judge_late_engine(evidence const& known);

/// `silent`, in order, have not answered for `time`, and others have.
verdict judge_silence(evidence const& known, std::vector<int> const& silent, duration time);

/// The agent that has started the watcher of `rank` has not answered for `time`.
verdict judge_silent_agent(evidence const& known, int rank, duration time);

/// SIGTERM has come to the launcher, and the scheduler was asked why. Says so, where it knows; the code is 0 where it is that of the
/// signal.
verdict explain_request_to_end(evidence const& known);

/// A failure of one rank that its watcher has seen by itself. `advice`: one thing to do, or empty.
verdict blame_rank(evidence const& known, int rank, failure_cause cause, std::string const& what, int exit_code,
                   std::string_view advice = {});

/// What a verdict means for a restart: only a failure that other processes or nodes may not meet again counts, and of the start of the ranks only a
/// later one (`first`: this is the run's first generation).
end_kind kind_of_end(verdict const& judged, evidence const& known, bool first);

/// Whether the program has no part in the cause.
bool is_from_outside(failure_cause cause) noexcept;
/// Whether somebody else may have killed the rank: a preemption or an out-of-memory daemon sends such signals. A kill at the limit of the rank's own memory
/// cgroup is the program's.
bool is_from_outside(rank_evidence const& rank) noexcept;

/// A failure of none of them.
verdict blame_run(failure_cause cause, std::string text, int exit_code);

/// An agent of the engine remote was lost before all ranks had come.
verdict blame_agent(evidence const& known, int rank);

/// Of a run that was to go on and does not: where the rank that is blamed waited in vain for one that is stopped, that one is to blame. Pure.
verdict blame_stopped_instead(evidence const& known, verdict judged);

}  // namespace muster
