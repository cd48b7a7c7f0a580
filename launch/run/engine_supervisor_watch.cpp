// The engine supervisor's fourth part: what ranks are doing, and whether their shims answer.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "launch/observe/hang_command.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/run/engine_supervisor.hpp"
#include "launch/watch/rank_table.hpp"

namespace muster {

namespace {

constexpr duration inspection_limit{3};
constexpr int most_missed_by_agents = 2;  ///< as with shims, two thirds of the time in which a node must answer

}  // namespace

/// Asks the shims and calls `then` when all have answered, or at the limit. The latest question counts.
void engine_supervisor::inspect_ranks(std::string const& command, std::vector<int> const& whom, duration limit,
                                      std::function<void()> then) {
    int const number = ++inspection_;
    after_inspection_ = std::move(then);
    asked_about_ = whom;
    auto const bytes = wire::encode(wire::inspect{number, command});
    for (int const r : whom)
        if (auto& rank = ranks_[r]; known_[r].now == rank_evidence::state::running) rank.link.send(bytes);
    loop_.after(limit, [this, number] {
        if (number == inspection_) finish_inspection();
    });
}

void engine_supervisor::finish_inspection() {
    if (auto const then = std::exchange(after_inspection_, nullptr)) then();
}

void engine_supervisor::on_message(remote_rank& rank, wire::seen const& seen) {
    if (seen.number != inspection_ || !after_inspection_) return;
    rank.inspected = seen.number;
    rank.sight = seen.sight;
    auto const pending = [this](int r) {
        return known_[r].now == rank_evidence::state::running && ranks_[r].inspected != inspection_;
    };
    if (std::none_of(asked_about_.begin(), asked_about_.end(), pending)) finish_inspection();
}

namespace {

std::vector<int> all_of(std::size_t count) {
    std::vector<int> ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

}  // namespace

void engine_supervisor::show_ranks() {
    inspect_ranks({}, all_of(ranks_.size()), inspection_limit, [this] {
        for (auto const& line : describe_ranks(ranks_.rows(inspection_))) say(line);
    });
}

/// A time limit has passed: the ranks are looked at before they are ended.
void engine_supervisor::expire(std::string const& reason) {
    if (failed_) return;
    failed_ = true;
    exit_code_ = exit_code(errc::timeout);
    say("error: " + reason);
    inspect_ranks({}, all_of(ranks_.size()), inspection_limit, [this] {
        auto const rows = ranks_.rows(inspection_);
        for (auto const& line : describe_ranks(rows)) say(line);
        auto const end = [this] { stop(exit_code(errc::timeout), SIGTERM); };
        if (options_.on_hang.empty()) return end();
        ask_on_hang(choose_examples(rows), end);
    });
}

void engine_supervisor::ask_on_hang(std::vector<int> const& whom, std::function<void()> then) {
    inspect_ranks(options_.on_hang, whom, duration(hang_command_limit) + duration(1), [this, then = std::move(then)] {
        for (auto const& row : ranks_.rows(inspection_))
            if (!row.sight.said.empty())
                say(fmt::format("--on-hang of rank {} on {}, pid {}:\n{}", row.rank, row.host, row.sight.pid, row.sight.said));
        then();
    });
}

void engine_supervisor::on_message(remote_rank& rank, wire::met const& met) {
    known_[rank.job.who.rank].connected = true;
    known_[rank.job.who.rank].finalized = met.left;
    judge_early_ends();
}

void engine_supervisor::on_message(remote_rank& rank, wire::settled const&) {
    known_[rank.job.who.rank].settled = true;
    judge_early_ends();
}

/// Only the engine remote tells of MPI's own meeting. A rank that ended well without leaving its world, or without having met it, is waited for
/// by the others, and no engine ends them.
void engine_supervisor::judge_early_ends() {
    if (phase_ != phase::running || failed_) return;
    act_on(judge_world(facts()));
}

/// --start-timeout: ranks meet at MASTER_PORT, which their shims can see; of MPI's own meeting only the engine remote tells.
void engine_supervisor::check_meeting() {
    if (phase_ != phase::running || failed_) return;
    inspect_ranks({}, all_of(ranks_.size()), inspection_limit, [this] { check_meeting_at_deadline(); });
}

void engine_supervisor::check_meeting_at_deadline() {
    if (phase_ != phase::running || failed_) return;
    auto const rows = ranks_.rows(inspection_);
    auto const met = std::count_if(rows.begin(), rows.end(), [](auto const& row) { return row.met.value_or(false); });
    auto const again = [this](duration when) { loop_.after(when, [this] { check_meeting(); }); };
    if (met == 0) {
        start_timeout_due_ = true;
        return again(meeting_check_every);
    }
    if (std::exchange(start_timeout_due_, false)) return again(*options_.start_timeout);
    std::vector<std::string> missing;
    for (auto const& row : rows)
        if (row.now == rank_row::life::running && row.met == false)
            missing.push_back(fmt::format("rank {} on {} (pid {})", row.rank, row.host, row.sight.pid));
    if (missing.empty()) return;
    bool const in_mpi = known_.any_connected();
    if (!in_mpi && !std::exchange(start_doubt_, true))
        return again(meeting_check_every);  // ranks that leave a world do not do so at one moment
    expire(fmt::format("{} of {} ranks have {} after --start-timeout {}; missing: {}", met, ranks_.size(),
                       in_mpi ? "met (initialised MPI, or connected to MASTER_PORT)" : "connected to MASTER_PORT",
                       format_duration(*options_.start_timeout), list_some(missing, "ranks")));
}

/// A world that has not come together after a while is told, and goes on.
void engine_supervisor::note_unmet() {
    if (phase_ != phase::running || failed_) return;
    inspect_ranks({}, all_of(ranks_.size()), inspection_limit, [this] {
        if (phase_ != phase::running || failed_) return;
        auto rows = find_unmet(ranks_.rows(inspection_), unmet_ ? &*unmet_ : nullptr);
        if (rows.empty()) return;
        if (!unmet_) {
            unmet_ = std::move(rows);
            return void(loop_.after(meeting_doubt, [this] { note_unmet(); }));
        }
        if (known_.any_connected())
            say(fmt::format("note: {} of {} ranks have not met the others (in MPI, or at MASTER_PORT):", rows.size(),
                            ranks_.size()));
        else
            say(fmt::format("note: {} of {} ranks have not connected to MASTER_PORT, and others have:", rows.size(),
                            ranks_.size()));
        for (auto const& line : describe_ranks(rows)) say(line);
    });
}

/// Not every MPI, nor every engine, ends the others when a rank leaves its world.
void engine_supervisor::note_leaver() {
    auto const* leaver = known_.find_leaver(-1);
    if (leaver == nullptr || phase_ != phase::running || failed_ || std::exchange(leaver_noted_, true)) return;
    say(fmt::format("note: {} exited with code 0, and {} go on: if it has not called MPI_Finalize, they wait for it forever",
                    known_.name_of(*leaver), count_of_ranks(known_.running())));
}

/// Keep-alive of the connections tells of lost nodes; a shim that is stopped only stays silent itself. It has two thirds of the
/// time in which a node must answer: this process may itself have been stopped, and reads first what was answered meanwhile.
void engine_supervisor::beat() {
    if (phase_ != phase::running) return;
    auto const third = options_.lost_after() / 3;
    ranks_.send_all(wire::ping{++beat_});
    auto const due = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(third);
    loop_.after(third, [this, third, due] {
        // The job was suspended, perhaps, and not all of its hosts go on at the same moment.
        if (duration(event_loop::clock::now() - due) > third) agents_count_since_ = beat_ + 1;
        auto const silent = [this](remote_rank const& r) {
            return known_[r.job.who.rank].now == rank_evidence::state::running && r.answered < beat_;
        };
        if (std::any_of(ranks_.begin(), ranks_.end(), silent))
            loop_.after(third, [this] { count_answers(); });
        else
            beat();
    });
}

void engine_supervisor::on_message(remote_rank& rank, wire::pong const& pong) {
    rank.answered = pong.number;
    int const missed = std::min(pong.agent_missed, pong.number - agents_count_since_);
    if (missed < most_missed_by_agents || phase_ != phase::running ||
        known_[rank.job.who.rank].now != rank_evidence::state::running)
        return;
    act_on(judge_silent_agent(known_, rank.job.who.rank, options_.lost_after() / 1.5));
}

void engine_supervisor::count_answers() {
    if (phase_ != phase::running || failed_) return;
    std::vector<int> silent;
    for (auto const& rank : known_.ranks)
        if (rank.now == rank_evidence::state::running && ranks_[rank.rank].answered < beat_) silent.push_back(rank.rank);
    auto const judged = judge_silence(known_, silent, options_.lost_after() / 1.5);
    if (!judged.ends()) return beat();
    act_on(judged);
}

}  // namespace muster
