#include "launch/watch/meeting_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "launch/ranks/rank_name.hpp"

namespace muster {

namespace {

constexpr duration early_end_patience{5};
constexpr duration leaver_patience{10};  ///< with engines, for whose ranks processor time is not read
constexpr double idle_cpu_s = 0.2;       ///< processor time that a waiting rank may use between two looks

bool has_met(rank_row const& row) {
    return row.met.value_or(false);
}

}  // namespace

void meeting_watch::start() {
    if (options_.start_timeout) loop_.after(*options_.start_timeout, [this] { check(); });
    if (known_.size() > 1 && !options_.quiet) loop_.after(meeting_patience, [this] { note_unmet(); });
}

void meeting_watch::on_meeting() {
    if (!known_.any_connected() || !std::exchange(nobody_met_, false)) return;
    loop_.after(*options_.start_timeout, [this] { check(); });
}

void meeting_watch::check() {
    if (run_.active()) run_.inspect([this](auto const& rows) { check(rows); });
}

void meeting_watch::check(std::vector<rank_row> const& rows) {
    if (!run_.active()) return;
    auto const met = std::ranges::count_if(rows, has_met);
    auto const again = [this](duration when) { loop_.after(when, [this] { check(); }); };
    if (met == 0) {  // the program does not meet, or has not got that far
        nobody_met_ = true;
        loop_.after(meeting_check_every, [this] {
            if (nobody_met_) check();
        });
        return;
    }
    if (std::exchange(nobody_met_, false)) return again(*options_.start_timeout);
    std::vector<std::string> missing;
    for (auto const& row : rows)
        if (row.now == rank_row::life::running && row.met == false)
            missing.push_back(fmt::format("rank {} on {} (pid {})", row.rank, row.host, row.sight.pid));
    if (missing.empty()) return;
    if (!known_.any_connected() && !std::exchange(doubted_, true)) return again(meeting_check_every);
    run_.expire(fmt::format("{} of {} ranks have {} after --start-timeout {}; missing: {}", met, known_.size(),
                            tells_of_mpi() ? "met (initialised MPI, or connected to MASTER_PORT)" : "connected to MASTER_PORT",
                            format_duration(*options_.start_timeout), list_some(missing, "ranks")));
}

/// Prints a note about a world that has not come together after a while, and lets it go on.
void meeting_watch::note_unmet() {
    if (!run_.active()) return;
    run_.inspect([this](auto const& all) {
        if (!run_.active()) return;
        auto rows = find_unmet(all, unmet_ ? &*unmet_ : nullptr);
        if (rows.empty()) return;
        if (!unmet_) {
            unmet_ = std::move(rows);
            return void(loop_.after(meeting_doubt, [this] { note_unmet(); }));
        }
        run_.say(fmt::format(
            "note: {} of {} ranks have not {}:", rows.size(), known_.size(),
            tells_of_mpi() ? "met the others (in MPI, or at MASTER_PORT)" : "connected to MASTER_PORT, and others have"));
        show(rows);
    });
}

void meeting_watch::on_rank_end(int rank) {
    auto const& ended = known_[rank];
    if (options_.quiet || !ended.ended_well()) return;
    if (!known_.engine.empty()) {
        if (ended.uses_mpi) loop_.after(leaver_patience, [this] { note_leaver(); });
    } else if (ended.mpi != rank_evidence::world::left && known_.running() > 0 && !std::exchange(end_noted_, true)) {
        loop_.after(early_end_patience, [this, rank] { note_waiting(rank); });
    }
}

/// A rank has ended well, and the running ones may wait for it: they do if all are connected to each other and none of them uses
/// its processor.
void meeting_watch::note_waiting(int ended) {
    if (!run_.active() || known_.running() == 0) return;
    run_.inspect([this, ended](std::vector<rank_row> rows) {
        std::erase_if(rows, [](rank_row const& row) { return row.now != rank_row::life::running || !row.is_rank(); });
        if (!std::ranges::all_of(rows, has_met)) return;
        if (!waiting_) {
            waiting_ = std::move(rows);
            return void(loop_.after(early_end_patience, [this, ended] { note_waiting(ended); }));
        }
        for (auto const& row : rows) {
            auto const before = std::ranges::find(*waiting_, row.seat, &rank_row::seat);
            if (before == waiting_->end() || row.sight.cpu_s - before->sight.cpu_s > idle_cpu_s) return;
        }
        run_.say(fmt::format("note: {} ended with code 0, and {} may wait for it:", known_.name_of(known_[ended]),
                             count_of_ranks(rows.size())));
        show(rows);
    });
}

/// Some MPI libraries and engines do not end the others when a rank leaves its world.
void meeting_watch::note_leaver() {
    auto const* leaver = known_.find_leaver(-1);
    if (leaver == nullptr || !run_.active() || std::exchange(end_noted_, true)) return;
    run_.say(fmt::format("note: {} exited with code 0, and {} go on: if it has not called MPI_Finalize, they wait for it forever",
                         known_.name_of(*leaver), count_of_ranks(known_.running())));
}

void meeting_watch::show(std::vector<rank_row> const& rows) const {
    for (auto const& line : describe_ranks(rows)) run_.say(line);
}

}  // namespace muster
