// The loss for which a generation ends: the first one that the others outlive or, if that came of another loss, the one that explains it.
#pragma once

#include <optional>
#include <string>

#include "launch/elastic/restart_policy.hpp"
#include "launch/watch/failure_judge.hpp"

namespace muster {

// All of these are plain values and pure functions: run_supervisor and the groups of ranks drive them, and so does tests/simulation.

struct generation_loss {
    verdict judged;
    std::string what;  ///< "rank 1 on node1 (member 1) was killed by signal 9 (SIGKILL)", "lost ranks 2-3 on node2"
    int member = -1;   ///< of the first culprit; -1: it has not become one
    bool operator==(generation_loss const&) const = default;
};

/// Judges the end of a rank's program in a run that may go on in place. `others_go_on`: they can go on without it, so nothing is
/// awaited first; otherwise something may be ending all ranks.
verdict judge_member_end(evidence const& known, int rank, bool others_go_on);

/// Notes whose end is held until its cause is known. Returns whether a decision is to be planned: none is yet.
bool hold_end(evidence& known, verdict const& held);

/// Returns it as generation_loss::what.
std::string describe_loss(evidence const& known, verdict const& judged);

/// Notes a loss that the others outlive, unless a generation has begun without it.
void note_loss(evidence& known, std::optional<generation_loss>& loss, verdict const& judged);

/// Notes ends whose cause is not known yet, since the next generation begins, and nobody would judge them later. Call it before
/// number_anew(). Returns whether one of them is the loss now.
bool note_held(evidence& known, std::optional<generation_loss>& loss);

/// Returns how the generation ends if the next one follows in place; without names and times.
generation_end end_of(generation_loss const& loss, evidence const& known);

/// Returns who is to blame for an end of all ranks: the loss before, if the last ones have ended because of it or are too few; a
/// stopped rank, if the blamed one has waited for it in vain.
verdict blame_for_end(evidence const& known, std::optional<generation_loss> const& loss, verdict judged);

}  // namespace muster
