#include "launch/run/remote/shim_questions.hpp"

#include <algorithm>
#include <numeric>

#include "launch/observe/process_sight.hpp"

namespace muster {

namespace {

constexpr int most_missed_by_agents = 2;  ///< as with shims, two thirds of the time in which a node must answer
constexpr duration inspection_limit{3};
constexpr int about_stops = -1;  ///< the number of each such question; the others count from 1

}  // namespace

void shim_questions::beat() {
    if (!run_.active()) return;
    ranks_.send_all(wire::ping{++beat_});
    auto const due = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(third_);
    loop_.after(third_, [this, due] { listen(due); });
}

void shim_questions::listen(event_loop::clock::time_point due) {
    // The job was suspended, perhaps, and not all of its hosts go on at the same moment.
    if (duration(event_loop::clock::now() - due) > third_) agents_count_since_ = beat_ + 1;
    if (silent().empty())
        beat();
    else
        loop_.after(third_, [this] { count_answers(); });
}

void shim_questions::count_answers() {
    if (run_.active() && run_.judge(silent())) beat();
}

std::vector<int> shim_questions::silent() const {
    std::vector<int> silent;
    for (auto const& rank : ranks_)
        if (runs(rank.job.who.rank) && rank.answered < beat_) silent.push_back(rank.job.who.rank);
    return silent;
}

bool shim_questions::take(int rank, wire::pong const& pong) {
    ranks_[rank].answered = pong.number;
    int const missed = std::min(pong.agent_missed, pong.number - agents_count_since_);
    return missed < most_missed_by_agents || !runs(rank);
}

void shim_questions::inspect(rank_group::rows_taker then) {
    std::vector<int> all(ranks_.size());
    std::iota(all.begin(), all.end(), 0);
    ask({}, all, inspection_limit, std::move(then));
}

void shim_questions::ask_about(std::string const& command, std::vector<int> const& whom, rank_group::rows_taker then) {
    ask(command, whom, duration(hang_command_limit) + duration(1), [then = std::move(then)](std::vector<rank_row> rows) {
        std::erase_if(rows, [](rank_row const& row) { return row.sight.said.empty(); });
        then(rows);
    });
}

void shim_questions::ask(std::string const& command, std::vector<int> const& whom, duration limit, rank_group::rows_taker then) {
    int const number = ++question_;
    after_question_ = std::move(then);
    asked_ = whom;
    auto const bytes = wire::encode(wire::inspect{number, command});
    for (int const rank : whom)
        if (runs(rank)) ranks_[rank].link.send(bytes);
    loop_.after(limit, [this, number] {
        if (number == question_) finish_asking();
    });
}

void shim_questions::finish_asking() {
    if (auto const then = std::exchange(after_question_, nullptr)) then(ranks_.rows(question_));
}

bool shim_questions::is_stopped(int rank) {
    ranks_[rank].link.send(wire::encode(wire::inspect{about_stops, {}}));
    return ranks_[rank].stopped;
}

void shim_questions::take(int rank, wire::seen const& seen) {
    if (seen.number == about_stops) ranks_[rank].stopped = seen.sight.state == 'T';
    if (seen.number != question_ || !after_question_) return;
    ranks_[rank].inspected = seen.number;
    ranks_[rank].sight = seen.sight;
    auto const pending = [this](int r) { return runs(r) && ranks_[r].inspected != question_; };
    if (std::none_of(asked_.begin(), asked_.end(), pending)) finish_asking();
}

}  // namespace muster
