// The spares of a run over several nodes: processes that wait for the places of lost ranks, or start on slots that have come.
// Their end is no failure.
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

/// Agents of their nodes start them with the ranks; on slots that come later, each gets its own starter. An ended spare is not
/// replaced, unless the hosts are looked at again. Used from the loop's thread.
class remote_spares {
  public:
    /// All arguments must outlive it.
    remote_spares(event_loop& loop, run_context const& run, remote_ranks& ranks, evidence& known, group_events& events,
                  remote_output& output)
        : loop_(loop), run_(run), ranks_(ranks), known_(known), events_(events), output_(output), log_(run, known, events) {}

    spare_log& log() noexcept { return log_; }

    /// Starts one on that slot, which joins `world`. `engine`: the command that started the others. Throws what prevents its
    /// starter's start.
    void start(slot const& at, engine_command const& engine, member_world& world);
    /// Notes the place that its shim has reported.
    void note_place(remote_rank const& rank);
    /// Notes that a child has ended; returns whether it was a starter. A starter whose shim has not come has failed.
    bool take_child(std::optional<member_world>& world, pid_t pid);
    bool any_starter() const noexcept { return !starters_.empty(); }
    void end_starters(int signal_number);
    /// Ends the starter of a newcomer whose shim has not come, and which cannot be reached otherwise.
    void end_starter(int seat);

    /// Adds those that wait for a place to `world`, once all are ready.
    void join(member_world& world);
    /// Notes that the program of one has ended.
    void note_end(std::optional<member_world>& world, rank_evidence const& one, bool runs);
    /// Gives up one that is silent. `node`: its node is silent, too.
    void give_up(std::optional<member_world>& world, remote_rank& rank, bool node);
    /// Gives up those ranks that are spares, or that the others have gone on without; returns the others.
    std::vector<int> give_up_silent(std::optional<member_world>& world, std::vector<int> silent);
    /// Signals those that wait, or have not begun to wait.
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
    std::map<int, slot> slots_;      ///< the slots of those that came later
    std::map<pid_t, int> starters_;  ///< the starters that run, with the seats of those that they start
};

}  // namespace muster
