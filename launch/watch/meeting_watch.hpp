// Watches whether the ranks of a run meet, and whether they wait for one that has ended.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/settings/run_options.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/watch/evidence.hpp"

namespace muster {

/// Ranks meet in MPI, whose server reports it, or at MASTER_PORT, which has to be inspected. A result from the port alone is
/// checked twice: ranks do not all leave a world at the same moment. Serves --start-timeout, and the notes about ranks that have
/// not met or that wait.
class meeting_watch {
  public:
    /// Holds what it needs from the run's supervisor.
    struct supervision {
        std::function<bool()> active;  ///< ranks run and are not ending
        std::function<void(std::function<void(std::vector<rank_row> const&)> then)> inspect;
        std::function<void(std::string const& reason)> expire;
        std::function<void(std::string const& line)> say;
    };
    /// All of these must outlive it.
    meeting_watch(event_loop& loop, run_options const& options, evidence const& known, supervision run)
        : loop_(loop), options_(options), known_(known), run_(std::move(run)) {}

    /// Notes that the ranks run.
    void start();
    /// Notes that some rank has met its world.
    void on_meeting();
    void on_rank_end(int rank);

  private:
    void check();
    void check(std::vector<rank_row> const& rows);
    void note_unmet();
    void note_waiting(int ended);
    void note_leaver();
    bool tells_of_mpi() const { return known_.engine.empty() || known_.any_connected(); }
    void show(std::vector<rank_row> const& rows) const;

    event_loop& loop_;
    run_options const& options_;
    evidence const& known_;
    supervision run_;
    bool nobody_met_ = false;                       ///< --start-timeout passed before any rank had met its world
    bool doubted_ = false;                          ///< ranks were missing at the last look
    std::optional<std::vector<rank_row>> unmet_;    ///< at the first look
    std::optional<std::vector<rank_row>> waiting_;  ///< at the first look after an early end
    bool end_noted_ = false;                        ///< a rank has ended well while others ran
};

}  // namespace muster
