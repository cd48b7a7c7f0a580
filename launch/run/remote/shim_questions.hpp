// Asks a run's shims whether they live, and what their ranks do.
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

/// Keep-alive of the connections detects lost nodes; a shim that is stopped only falls silent. It has two thirds of the time in
/// which a node must answer: this process may itself have been stopped, and first reads the answers of that time. Used from the
/// loop's thread.
class shim_questions {
  public:
    struct supervision {
        std::function<bool()> active;                               ///< ranks run and are not ending
        std::function<bool(std::vector<int> const& silent)> judge;  ///< returns whether the run goes on
    };
    /// `lost_after`: the time in which a node must answer. All arguments must outlive it.
    shim_questions(event_loop& loop, remote_ranks& ranks, duration lost_after, supervision run)
        : loop_(loop), ranks_(ranks), third_(lost_after / 3), run_(std::move(run)) {}

    /// Asks all whether they live, again and again.
    void beat();
    /// Takes the answer of this rank's shim. Returns false if its agent has not answered, and that counts.
    bool take(int rank, wire::pong const& pong);
    /// Notes that a rank's shim has just sent something by itself.
    void note_alive(int rank) { ranks_[rank].answered = beat_; }

    /// Does what rank_group says. `then` is called when all have answered, or at a limit.
    void inspect(rank_group::rows_taker then);
    void ask_about(std::string const& command, std::vector<int> const& whom, rank_group::rows_taker then);
    void take(int rank, wire::seen const& seen);
    void look_at_stopped(std::vector<int> const& whom, rank_group::stopped_taker then);
    /// Calls `then` if only a rank that has now ended was awaited.
    void finish_if_answered();

  private:
    void listen(event_loop::clock::time_point due);
    void count_answers();
    std::vector<int> silent() const;
    void ask(std::string const& command, std::vector<int> const& whom, duration limit, rank_group::rows_taker then);
    void finish_asking();
    /// A question who is stopped. Each has a negative number, so that an answer to an earlier question does not count.
    struct stop_look {
        int number;
        std::set<int> awaited;
        held_ranks held;
        rank_group::stopped_taker then;
    };
    void finish_stop_looks();
    void give_up_stop_look(int number);
    bool runs(int rank) const { return ranks_.known(rank).now == rank_evidence::state::running; }

    event_loop& loop_;
    remote_ranks& ranks_;
    duration third_;
    supervision run_;
    int beat_ = 0;                ///< the number of the last ping
    int agents_count_since_ = 0;  ///< the number of the first ping that agents must answer
    int question_ = 0;            ///< the number of the last question about what ranks do
    std::deque<stop_look> stop_looks_;
    int stop_look_ = 0;      ///< the number of the last one
    std::set<int> awaited_;  ///< ranks that have not answered the last question about what ranks do
    rank_group::rows_taker after_question_;
};

}  // namespace muster
