#include "launch/run/remote/shim_questions.hpp"

#include <algorithm>
#include <numeric>

#include "launch/observe/process_sight.hpp"

namespace muster {

namespace {

constexpr int most_missed_by_agents = 2;  ///< as with shims, two thirds of the time in which a node must answer
constexpr duration inspection_limit{3};
constexpr duration stop_look_limit{2};

/// Removes ranks that have gone from the front of `awaited`: the first rank that is still awaited decides, so later ones need no
/// check with each answer.
template <typename Predicate>
bool is_answered(std::set<int>& awaited, Predicate has_gone) {
    while (!awaited.empty() && has_gone(*awaited.begin())) awaited.erase(awaited.begin());
    return awaited.empty();
}

}  // namespace

void shim_questions::beat() {
    if (!run_.active()) return;
    ranks_.send_all(wire::ping{++beat_});
    auto const due = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(third_);
    loop_.after(third_, [this, due] { listen(due); });
}

void shim_questions::listen(event_loop::clock::time_point due) {
    // The job may have been suspended, and not all of its hosts resume at the same moment.
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

/// A caller that waits for an earlier inspection gets this one.
void shim_questions::inspect(rank_group::rows_taker then) {
    if (auto before = std::exchange(after_question_, nullptr))
        then = [before = std::move(before), then = std::move(then)](auto const& rows) {
            before(rows);
            then(rows);
        };
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
    awaited_.clear();
    auto const bytes = wire::encode(wire::inspect{number, command});
    for (int const rank : whom)
        if (runs(rank)) {
            awaited_.insert(rank);
            ranks_[rank].link.send(bytes);
        }
    loop_.after(limit, [this, number] {
        if (number == question_) finish_asking();
    });
    finish_if_answered();
}

void shim_questions::finish_if_answered() {
    if (!stop_looks_.empty()) loop_.after(duration(0), [this] { finish_stop_looks(); });  // after the rank's end is noted
    if (after_question_ && is_answered(awaited_, [this](int rank) { return !runs(rank); })) finish_asking();
}

void shim_questions::finish_asking() {
    if (auto const then = std::exchange(after_question_, nullptr)) then(ranks_.rows(question_));
}

void shim_questions::look_at_stopped(std::vector<int> const& whom, rank_group::stopped_taker then) {
    int const number = --stop_look_;
    auto const bytes = wire::encode(wire::inspect{number, {}});
    stop_look look{number, {}, {}, std::move(then)};
    for (int const rank : whom)
        if (runs(rank) && ranks_[rank].link.open()) {
            look.awaited.insert(rank);
            ranks_[rank].link.send(bytes);
        }
    stop_looks_.push_back(std::move(look));
    loop_.after(stop_look_limit, [this, number] { give_up_stop_look(number); });
    finish_stop_looks();
}

/// A rank that does not answer is not known to be stopped.
void shim_questions::give_up_stop_look(int number) {
    for (auto& look : stop_looks_)
        if (look.number == number) look.awaited.clear();
    finish_stop_looks();
}

/// Finishes them in their order.
void shim_questions::finish_stop_looks() {
    while (!stop_looks_.empty()) {
        auto& first = stop_looks_.front();
        if (!is_answered(first.awaited, [this](int rank) { return !runs(rank) || !ranks_[rank].link.open(); })) return;
        auto const done = std::move(first);
        stop_looks_.pop_front();
        done.then(done.held);
    }
}

void shim_questions::take(int rank, wire::seen const& seen) {
    for (auto& look : stop_looks_) {
        if (look.number != seen.number || look.awaited.erase(rank) == 0) continue;
        if (seen.sight.state == 'T') look.held.stopped.push_back(rank);
        if (seen.sight.state == 'D') look.held.blocked[rank] = {seen.sight.waits, seen.sight.where};
    }
    if (seen.number < 0) return finish_stop_looks();
    if (seen.number != question_ || !after_question_) return;
    ranks_[rank].inspected = seen.number;
    ranks_[rank].sight = seen.sight;
    awaited_.erase(rank);
    finish_if_answered();
}

}  // namespace muster
