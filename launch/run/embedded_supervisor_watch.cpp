// The embedded supervisor's third part: whom to blame for an end, and what ranks are doing.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "launch/observe/hang_command.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/run/embedded_supervisor.hpp"
#include "launch/system/exit_status.hpp"
#include "launch/watch/job_end.hpp"

namespace muster {

namespace {

constexpr duration early_end_patience{5};
constexpr double idle_cpu_s = 0.2;  ///< processor time that a waiting rank may use meanwhile

}  // namespace

void embedded_supervisor::decide_cause() {
    if (!std::exchange(known_.deciding, false) || phase_ != phase::running) return;
    known_.scheduler = scheduler_word{ask_job_end(given_, inherited_), {}};
    judge(judge_cause);
    if (running_ == 0) on_ranks_gone();
}

/// SIGTERM has come to this process: why, if the scheduler knows.
void embedded_supervisor::explain_end() {
    if (!given_.fixed) return;
    known_.scheduler = scheduler_word{ask_job_end(given_, inherited_), {}};
    if (auto const why = explain_request_to_end(known_); why.ends()) say("error: " + why.text);
}

std::vector<rank_row> embedded_supervisor::inspect_ranks() const {
    process_table const processes;
    process_sight sight;
    return known_.rows([&](int number) {
        auto const& rank = ranks_[static_cast<std::size_t>(number)];
        sight = processes.inspect(rank.pid, master_port_);
        if (rank.last_written != nullptr)
            add_output(sight, rank.last_written->last_lines(), duration(event_loop::clock::now() - rank.last_output).count());
        return &sight;
    });
}

void embedded_supervisor::show_ranks(std::string const& command) {
    auto const rows = inspect_ranks();
    for (auto const& line : describe_ranks(rows)) say(line);
    if (command.empty()) return;
    auto const end = event_loop::clock::now() + hang_command_limit;
    for (int const r : choose_examples(rows)) {
        auto const& row = rows[static_cast<std::size_t>(r)];
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - event_loop::clock::now());
        if (left.count() <= 0) return say("--on-hang: no time is left for the other ranks");
        say(fmt::format("--on-hang of rank {} on {}, pid {}:\n{}", row.rank, row.host, row.sight.pid,
                        ask_about(command, row.sight.pid, inherited_, left)));
    }
}

void embedded_supervisor::expire(std::string const& reason) {
    if (failed_) return;
    failed_ = true;
    say("error: " + reason);
    show_ranks(options_.on_hang);
    stop(exit_code(errc::timeout), SIGTERM);
}

/// Ranks meet in MPI, which asks muster, or at MASTER_PORT, where one must look. What the port alone tells is looked at twice: ranks
/// that leave a world do not do so at one moment.
void embedded_supervisor::on_start_timeout() {
    if (phase_ != phase::running) return;
    auto const rows = inspect_ranks();
    auto const met = std::count_if(rows.begin(), rows.end(), [](auto const& row) { return row.met.value_or(false); });
    if (met == 0) {  // no program that meets, or none that has come so far
        start_timeout_due_ = true;
        loop_.after(meeting_check_every, [this] {
            if (start_timeout_due_) on_start_timeout();
        });
        return;
    }
    if (std::exchange(start_timeout_due_, false)) {
        loop_.after(*options_.start_timeout, [this] { on_start_timeout(); });
        return;
    }
    std::string missing;
    for (auto const& row : rows)
        if (row.now == rank_row::life::running && row.met == false)
            missing += fmt::format("{}rank {} on {} (pid {})", missing.empty() ? "" : ", ", row.rank, row.host, row.sight.pid);
    if (missing.empty()) return;
    if (!known_.any_connected() && !std::exchange(start_doubt_, true)) {
        loop_.after(meeting_check_every, [this] { on_start_timeout(); });
        return;
    }
    expire(fmt::format(
        "{} of {} ranks have met (initialised MPI, or connected to MASTER_PORT) after --start-timeout {}; missing: {}", met,
        ranks_.size(), format_duration(*options_.start_timeout), missing));
}

/// A world that has not come together after a while is told, and goes on.
void embedded_supervisor::note_unmet() {
    if (phase_ != phase::running || failed_) return;
    auto rows = find_unmet(inspect_ranks(), unmet_ ? &*unmet_ : nullptr);
    if (rows.empty()) return;
    if (!unmet_) {
        unmet_ = std::move(rows);
        loop_.after(meeting_doubt, [this] { note_unmet(); });
        return;
    }
    say(fmt::format("note: {} of {} ranks have not met the others (in MPI, or at MASTER_PORT):", rows.size(), ranks_.size()));
    for (auto const& line : describe_ranks(rows)) say(line);
}

void embedded_supervisor::await_others(int ended) {
    if (early_end_ >= 0 || options_.quiet) return;
    early_end_ = ended;
    loop_.after(early_end_patience, [this] { note_early_end(); });
}

/// A rank has ended well, and those that still run may wait for it: they do if all are connected to each other and none of them
/// uses its processor.
void embedded_supervisor::note_early_end() {
    if (phase_ != phase::running || failed_ || running_ == 0) return;
    auto rows = inspect_ranks();
    std::erase_if(rows, [](rank_row const& row) { return row.now != rank_row::life::running; });
    bool const together = std::all_of(rows.begin(), rows.end(), [](rank_row const& row) { return row.met.value_or(false); });
    if (!together) return;
    if (early_inspection_.empty()) {
        early_inspection_ = std::move(rows);
        loop_.after(early_end_patience, [this] { note_early_end(); });
        return;
    }
    for (auto const& row : rows) {
        auto const before =
            std::find_if(early_inspection_.begin(), early_inspection_.end(), [&](auto const& r) { return r.rank == row.rank; });
        if (before == early_inspection_.end() || row.sight.cpu_s - before->sight.cpu_s > idle_cpu_s) return;
    }
    say(fmt::format("note: {} ended with code 0, and {} may wait for it:", known_.name_of(known_[early_end_]),
                    count_of_ranks(rows.size())));
    for (auto const& line : describe_ranks(rows)) say(line);
}

}  // namespace muster
