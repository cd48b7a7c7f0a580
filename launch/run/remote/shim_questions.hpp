// The questions that a run's shims are asked: whether they are there, and what their ranks do.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launch/run/rank_group.hpp"
#include "launch/run/remote/remote_ranks.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Keep-alive of the connections tells of lost nodes; a shim that is stopped only stays silent itself. It has two thirds of the time in
/// which a node must answer: this process may itself have been stopped, and reads first what was answered meanwhile. Used from the
/// loop's thread.
class shim_questions {
  public:
    struct supervision {
        std::function<bool()> active;                               ///< ranks run, and are not ending
        std::function<bool(std::vector<int> const& silent)> judge;  ///< whether the run goes on
    };
    /// `lost_after`: in which a node must answer. All must outlive it.
    shim_questions(event_loop& loop, remote_ranks& ranks, duration lost_after, supervision run)
        : loop_(loop), ranks_(ranks), third_(lost_after / 3), run_(std::move(run)) {}

    /// Asks all whether they are there, again and again.
    void beat();
    /// The shim of this rank has answered. False: its agent has not, and that counts.
    bool take(int rank, wire::pong const& pong);
    /// A rank's shim has just come by itself.
    void note_alive(int rank) { ranks_[rank].answered = beat_; }

    /// As rank_group says. `then` is called when all have answered, or at a limit.
    void inspect(rank_group::rows_taker then);
    void ask_about(std::string const& command, std::vector<int> const& whom, rank_group::rows_taker then);
    void take(int rank, wire::seen const& seen);
    void look_at_stopped(std::vector<int> const& whom, rank_group::stopped_taker then);
    /// A rank has ended: if only it was waited for, `then` is called.
    void finish_if_answered();

  private:
    void listen(event_loop::clock::time_point due);
    void count_answers();
    std::vector<int> silent() const;
    void ask(std::string const& command, std::vector<int> const& whom, duration limit, rank_group::rows_taker then);
    void finish_asking();
    /// A question who is stopped. Each has a number below 0, so that an answer to an earlier question does not count.
    struct stop_look {
        int number;
        std::set<int> awaited;
        std::vector<int> stopped;
        rank_group::stopped_taker then;
    };
    void finish_stop_looks();
    void give_up_stop_look(int number);
    bool runs(int rank) const { return ranks_.known(rank).now == rank_evidence::state::running; }

    event_loop& loop_;
    remote_ranks& ranks_;
    duration third_;
    supervision run_;
    int beat_ = 0;                ///< number of the last ping
    int agents_count_since_ = 0;  ///< number of the ping from which on agents must answer
    int question_ = 0;            ///< number of the last one about what ranks do
    std::deque<stop_look> stop_looks_;
    int stop_look_ = 0;      ///< number of the last one
    std::set<int> awaited_;  ///< who has not answered the last question about what ranks do
    rank_group::rows_taker after_question_;
};

}  // namespace muster
