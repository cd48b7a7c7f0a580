// The spares of a run over several nodes: processes on the last nodes, which wait for the places of lost ranks, and whose end is no failure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/run/members/member_world.hpp"
#include "launch/run/members/spare_log.hpp"
#include "launch/run/rank_group.hpp"
#include "launch/run/remote/remote_output.hpp"
#include "launch/run/remote/remote_ranks.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// They are started with the ranks by the agents of their nodes. None takes the place of one that has ended. Used from the loop's thread.
class remote_spares {
  public:
    /// All must outlive it.
    remote_spares(run_context const& run, remote_ranks& ranks, evidence& known, group_events& events, remote_output& output)
        : run_(run), ranks_(ranks), known_(known), events_(events), output_(output), log_(run, known, events) {}

    spare_log& log() noexcept { return log_; }

    /// All are there: those that wait for a place in `world`.
    void join(member_world& world);
    /// The program of one has ended.
    void note_end(std::optional<member_world>& world, rank_evidence const& one, bool runs);
    /// Nothing is heard of one any more. `node`: nor of the node it is on.
    void give_up(std::optional<member_world>& world, remote_rank& rank, bool node);
    /// Those of these ranks that are spares; returns the others.
    std::vector<int> give_up_silent(std::optional<member_world>& world, std::vector<int> silent);
    /// Those that still wait, or have not begun to.
    void signal(int number);

  private:
    run_context const& run_;
    remote_ranks& ranks_;
    evidence& known_;
    group_events& events_;
    remote_output& output_;
    spare_log log_;
};

}  // namespace muster
