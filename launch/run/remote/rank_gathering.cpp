#include "launch/run/remote/rank_gathering.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr duration gather_limit{120};  ///< for the next host or rank to come: all of a large job may take longer

}  // namespace

void rank_gathering::start() {
    note_progress();
    if (auto const& limit = run_.options.start_timeout)
        loop_.after(*limit, [this] { on_timeout(); });
    else
        watch();
}

void rank_gathering::watch() {
    auto const left = gather_limit - duration(event_loop::clock::now() - last_progress_);
    if (left <= duration(0)) return on_timeout();
    loop_.after(left, [this] {
        if (gathering()) watch();
    });
}

void rank_gathering::on_timeout() {
    if (!gathering()) return;
    auto const& limit = run_.options.start_timeout;
    auto const when =
        limit ? fmt::format("after --start-timeout {}", format_duration(*limit))
              : fmt::format("nothing has come for {} (--start-timeout T waits for T):", format_duration(gather_limit));
    events_.judge([&](evidence const&) {
        return blame_run(
            failure_cause::never_came,
            fmt::format("{} {} of {} ranks are there; missing: {}; check those nodes with muster doctor --allocation", when,
                        known_.count(rank_evidence::state::ready), ranks_.size(), ranks_.list_missing()),
            exit_code(errc::timeout));
    });
}

bool rank_gathering::may_start() const {
    auto const& place = run_.options.place;
    bool const sharing = place.ranks_per_gpu > 1 || place.slots_per_node || !place.gpu_map.empty();
    if (auto const shared = sharing ? std::nullopt : ranks_.find_shared_gpu()) {
        events_.judge([&](evidence const& now) {
            return blame_rank(now, shared->first, failure_cause::never_came,
                              fmt::format("would share its GPU with {}", now.name_of(now[shared->second])),
                              exit_code(errc::placement), "use --ranks-per-gpu if that is meant");
        });
        return false;
    }
    for (auto const& rank : ranks_)
        if (rank.spare < 0) run_.outcome.shares.push_back({rank.place.cpus, rank.place.gpu_index});
    tell_of_places();
    return true;
}

void rank_gathering::tell_of_places() const {
    if (run_.options.verbose)
        for (auto const& rank : ranks_)
            events_.say(fmt::format("{}: cores {}{}; {}", known_.name_of(known_[rank.job.who.rank]),
                                    rank.place.cpus.empty() ? "any" : rank.place.cpus,
                                    rank.place.nic.empty() ? "" : ", NIC " + rank.place.nic, rank.place.why));
    if (auto const note = ranks_.note_on_places(); !note.empty() && !run_.options.quiet) events_.say("note: " + note);
}

}  // namespace muster
