// The pulse of a run's shims: asks them again and again whether they are there.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "launch/run/remote/remote_ranks.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Keep-alive of the connections tells of lost nodes; a shim that is stopped only stays silent itself. It has two thirds of the time in
/// which a node must answer: this process may itself have been stopped, and reads first what was answered meanwhile.
class shim_pulse {
  public:
    struct supervision {
        std::function<bool()> active;                               ///< ranks run, and are not ending
        std::function<bool(std::vector<int> const& silent)> judge;  ///< whether the run goes on
    };
    /// `lost_after`: in which a node must answer. All must outlive it.
    shim_pulse(event_loop& loop, remote_ranks& ranks, duration lost_after, supervision run)
        : loop_(loop), ranks_(ranks), third_(lost_after / 3), run_(std::move(run)) {}

    void beat();
    /// The shim of this rank has answered. False: its agent has not, and that counts.
    bool take(int rank, wire::pong const& pong);
    /// A rank's shim has just come by itself.
    void note_alive(int rank) { ranks_[rank].answered = number_; }

  private:
    void listen(event_loop::clock::time_point due);
    void count_answers();
    std::vector<int> silent() const;

    event_loop& loop_;
    remote_ranks& ranks_;
    duration third_;
    supervision run_;
    int number_ = 0;              ///< of the last ping
    int agents_count_since_ = 0;  ///< number of the ping from which on agents must answer
};

}  // namespace muster
