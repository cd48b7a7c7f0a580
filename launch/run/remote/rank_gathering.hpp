// Gathers the ranks that an engine starts: ends the run if some do not come, and checks their places before they begin.
#pragma once

#include "launch/run/rank_group.hpp"
#include "launch/run/remote/remote_ranks.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Covers the time from the engine's start until all ranks are ready. It waits for slow ranks as long as others still come.
class rank_gathering {
  public:
    /// All arguments must outlive it.
    rank_gathering(event_loop& loop, run_context const& run, remote_ranks const& ranks, evidence const& known,
                   group_events& events)
        : loop_(loop), run_(run), ranks_(ranks), known_(known), events_(events) {}

    /// Notes that the engine has been started.
    void start();
    /// Notes that a host or a rank has come, or that a rank was placed.
    void note_progress() { last_progress_ = event_loop::clock::now(); }

    /// Call it when all shims are ready and nothing has been started. Returns false if two ranks share a GPU and the run ends for
    /// that; else notes the ranks' places.
    bool may_start() const;

  private:
    bool gathering() const { return events_.now() == run_phase::starting; }
    void watch();
    void on_timeout();
    void tell_of_places() const;

    event_loop& loop_;
    run_context const& run_;
    remote_ranks const& ranks_;
    evidence const& known_;
    group_events& events_;
    event_loop::clock::time_point last_progress_{};
};

}  // namespace muster
