#include "launch/run/remote/shim_pulse.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr int most_missed_by_agents = 2;  ///< as with shims, two thirds of the time in which a node must answer

}  // namespace

void shim_pulse::beat() {
    if (!run_.active()) return;
    ranks_.send_all(wire::ping{++number_});
    auto const due = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(third_);
    loop_.after(third_, [this, due] { listen(due); });
}

void shim_pulse::listen(event_loop::clock::time_point due) {
    // The job was suspended, perhaps, and not all of its hosts go on at the same moment.
    if (duration(event_loop::clock::now() - due) > third_) agents_count_since_ = number_ + 1;
    if (silent().empty())
        beat();
    else
        loop_.after(third_, [this] { count_answers(); });
}

void shim_pulse::count_answers() {
    if (run_.active() && run_.judge(silent())) beat();
}

std::vector<int> shim_pulse::silent() const {
    std::vector<int> silent;
    for (auto const& rank : ranks_)
        if (ranks_.known(rank).now == rank_evidence::state::running && rank.answered < number_)
            silent.push_back(rank.job.who.rank);
    return silent;
}

bool shim_pulse::take(int rank, wire::pong const& pong) {
    ranks_[rank].answered = pong.number;
    int const missed = std::min(pong.agent_missed, pong.number - agents_count_since_);
    return missed < most_missed_by_agents || ranks_.known(ranks_[rank]).now != rank_evidence::state::running;
}

}  // namespace muster
