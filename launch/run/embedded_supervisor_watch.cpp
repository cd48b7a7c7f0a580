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
constexpr double idle_cpu_s = 0.2;          ///< processor time that a waiting rank may use meanwhile
constexpr std::size_t most_early_ends = 4;  ///< that are named

}  // namespace

/// A scheduler ends a job by signals to all of its processes, of which the ranks may be the first: such an end is held for a moment.
void embedded_supervisor::suspect(child_rank& rank, end_fault const& fault) {
    bool const held = given_.fixed && phase_ == phase::running && !failed_ && suspect_ < 0 &&
                      may_be_sent_to_all(*rank.wait_status) &&
                      compare(memory_, count_memory_kills()) != memory_verdict::in_cgroup;
    if (!held) return fail(rank, fault.what, fault.exit_code, fault.advice);
    suspect_ = rank.who.rank;
    suspected_ = fault;
    loop_.after(blame_patience, [this] { decide_cause(); });
}

void embedded_supervisor::decide_cause() {
    if (suspect_ < 0 || phase_ != phase::running) return;
    auto& rank = ranks_[static_cast<std::size_t>(std::exchange(suspect_, -1))];
    if (auto const why = describe(ask_job_end(given_, inherited_), given_); !why.empty()) {
        failed_ = true;
        say(fmt::format("error: {}; ending {}", why, count_of_ranks(static_cast<std::size_t>(running_))));
        stop(128 + SIGTERM, SIGTERM);
    } else {
        fail(rank, suspected_->what, suspected_->exit_code, suspected_->advice);
    }
    if (running_ == 0) on_ranks_gone();
}

/// SIGTERM has come to this process: why, if the scheduler knows.
void embedded_supervisor::explain_end() {
    if (!given_.fixed) return;
    if (auto const why = describe(ask_job_end(given_, inherited_), given_); !why.empty()) say("error: " + why);
}

/// Ranks that ended well before the one that failed, and that it may have missed.
std::string embedded_supervisor::list_early_ends() const {
    std::string names;
    std::size_t count = 0;
    for (auto const& rank : ranks_)
        if (rank.wait_status && *rank.wait_status == 0 && ++count <= most_early_ends)
            names += (names.empty() ? "" : ", ") + name_of(rank);
    if (count == 0) return {};
    return fmt::format("{} had ended with code 0 before that", count > most_early_ends ? count_of_ranks(count) : names);
}

std::vector<rank_row> embedded_supervisor::inspect_ranks() const {
    process_table const processes;
    std::vector<rank_row> rows;
    for (auto const& rank : ranks_) {
        rank_row row;
        row.rank = rank.who.rank;
        row.host = rank.who.host;
        if (rank.running()) {
            row.sight = processes.inspect(rank.pid, master_port_);
            if (rank.last_written != nullptr)
                add_output(row.sight, rank.last_written->last_lines(),
                           duration(event_loop::clock::now() - rank.last_output).count());
        } else {
            row.now = rank_row::life::ended;
            row.end = rank.wait_status ? describe_end(*rank.wait_status) : "was not started";
        }
        if (rank.connected) row.met = true;
        rows.push_back(std::move(row));
    }
    infer_meeting(rows);
    return rows;
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
    bool const sure = std::any_of(ranks_.begin(), ranks_.end(), [](child_rank const& rank) { return rank.connected; });
    if (!sure && !std::exchange(start_doubt_, true)) {
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

void embedded_supervisor::await_others(child_rank const& ended) {
    if (early_end_ >= 0 || options_.quiet) return;
    early_end_ = ended.who.rank;
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
    say(fmt::format("note: {} ended with code 0, and {} may wait for it:",
                    name_of(ranks_[static_cast<std::size_t>(early_end_)]), count_of_ranks(rows.size())));
    for (auto const& line : describe_ranks(rows)) say(line);
}

}  // namespace muster
