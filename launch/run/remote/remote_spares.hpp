// The spares of a run over several nodes: processes that wait for the places of lost ranks, or come in on slots that have come, and whose end is no failure.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/engine/engine_job.hpp"
#include "launch/run/members/member_world.hpp"
#include "launch/run/members/spare_log.hpp"
#include "launch/run/rank_group.hpp"
#include "launch/run/remote/remote_output.hpp"
#include "launch/run/remote/remote_ranks.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// They are started with the ranks by the agents of their nodes, or, on slots that have come, later, each by its own starter. None takes the place of one
/// that has ended, unless the hosts are looked at again. Used from the loop's thread.
class remote_spares {
  public:
    /// All must outlive it.
    remote_spares(event_loop& loop, run_context const& run, remote_ranks& ranks, evidence& known, group_events& events,
                  remote_output& output)
        : loop_(loop), run_(run), ranks_(ranks), known_(known), events_(events), output_(output), log_(run, known, events) {}

    spare_log& log() noexcept { return log_; }

    /// Starts one on that slot, which comes into `world`. `engine`: the command that has started the others. Throws what keeps its starter from being started.
    void start(slot const& at, engine_command const& engine, member_world& world);
    /// Its shim has told where it is.
    void note_place(remote_rank const& rank);
    /// A child has ended: whether it was a starter. Nothing comes of one whose shim has not come.
    bool take_child(std::optional<member_world>& world, pid_t pid);
    bool any_starter() const noexcept { return !starters_.empty(); }
    void end_starters(int signal_number);
    /// That of a newcomer that cannot be reached otherwise: its shim has not come.
    void end_starter(int seat);

    /// All are there: those that wait for a place in `world`.
    void join(member_world& world);
    /// The program of one has ended.
    void note_end(std::optional<member_world>& world, rank_evidence const& one, bool runs);
    /// Nothing is heard of one any more. `node`: nor of the node it is on.
    void give_up(std::optional<member_world>& world, remote_rank& rank, bool node);
    /// Those of these ranks that are spares, or that the others have gone on without; returns the others.
    std::vector<int> give_up_silent(std::optional<member_world>& world, std::vector<int> silent);
    /// Those that still wait, or have not begun to.
    void signal(int number);

  private:
    std::string cool(std::optional<member_world> const& world, rank_evidence const& one, bool node);

    event_loop& loop_;
    run_context const& run_;
    remote_ranks& ranks_;
    evidence& known_;
    group_events& events_;
    remote_output& output_;
    spare_log log_;
    std::map<int, slot> slots_;      ///< of those that came later
    std::map<pid_t, int> starters_;  ///< and theirs, which run
};

}  // namespace muster
