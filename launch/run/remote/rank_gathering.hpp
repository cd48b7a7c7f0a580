// The gathering of ranks that an engine starts: ends the run where they do not come, and looks at their places before they begin.
#pragma once

#include "launch/run/rank_group.hpp"
#include "launch/run/remote/remote_ranks.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// From the engine's start until all ranks are there. Whoever takes his time is waited for as long as others still come.
class rank_gathering {
  public:
    /// All must outlive it.
    rank_gathering(event_loop& loop, run_context const& run, remote_ranks const& ranks, evidence const& known,
                   group_events& events)
        : loop_(loop), run_(run), ranks_(ranks), known_(known), events_(events) {}

    /// The engine has been started.
    void start();
    /// A host or a rank has come, or was placed.
    void note_progress() { last_progress_ = event_loop::clock::now(); }

    /// All shims are there and nothing has been started yet, the last moment to see that two ranks have one GPU: false if the run ends for
    /// that. Else notes the ranks' places.
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
