#include "comm/exchange/negotiation/overdue_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/backend/speaker.hpp"

namespace muster::detail {

namespace {

using namespace std::chrono_literals;

std::vector<int> ranks_of(std::vector<late_rank> const& late) {
    std::vector<int> ranks;
    for (auto const& each : late) ranks.push_back(each.rank);
    return ranks;
}

exchange_clock::duration to_clock(duration seconds) {
    return std::chrono::duration_cast<exchange_clock::duration>(seconds);
}

}  // namespace

overdue_watch::overdue_watch(communicator const& ranks, std::vector<std::string> const& places, coordinator const& all,
                             exchange_context& shared)
    : ranks_(ranks), places_(places), coordinator_(all), shared_(shared) {
    duration tell = shared.options.stall_warning;
    duration const quarter = shared.options.deadline / 4;
    if (tell.count() <= 0 || (quarter.count() > 0 && quarter < tell)) tell = quarter;
    tell_stall_ = tell.count() > 0 ? to_clock(tell) : exchange_clock::duration::max();
}

std::vector<late_rank> overdue_watch::find_dead(operation const& what, exchange_clock::time_point began,
                                                exchange_clock::time_point now) {
    bool const suspected = dead_since_ > began;
    // Messages of dead ranks may still arrive.
    if (now - std::max(began, last_look_) < (suspected ? 100ms : 200ms)) return {};
    last_look_ = now;
    auto late = what.late_ranks();
    std::erase_if(late, [](late_rank const& each) { return !each.dead; });
    if (late.empty() || suspected) return late;
    dead_since_ = now;
    return {};
}

comm_error overdue_watch::death_error(std::string const& unfinished, std::vector<late_rank> const& dead) const {
    std::vector<std::string> names;
    for (auto const& each : dead) names.push_back(name_of(each.rank) + ": " + each.why);
    return comm_error(errc::peer_failed,
                      fmt::format("{} ({}) {}: {}; look at what that rank wrote last", unfinished, speaker(ranks_.who()),
                                  lost_rank_words, join(names, "; ")),
                      ranks_of(dead));
}

std::string overdue_watch::describe_unit(pending_request const& unit) const {
    std::string group;
    if (unit.many)
        group = fmt::format(" ({} tensors, \"{}\" … \"{}\")", unit.many->size(), unit.what->tensors.front().name,
                            unit.what->tensors.back().name);
    return fmt::format("{}{} ({})", describe(unit.what->kind, unit.what->name), group, speaker(ranks_.who()));
}

std::string overdue_watch::name_of(int rank) const {
    return fmt::format("rank {} ({})", rank, places_.at(static_cast<std::size_t>(rank)));
}

std::vector<int> overdue_watch::missing_of(pending_request const& unit) const {
    for (auto const& each : coordinator_.waiting())
        if (each.what.name == unit.what->name) return each.missing;
    return {};
}

comm_error overdue_watch::deadline_error(pending_request const& unit, std::vector<late_rank> const& late, bool stuck) const {
    duration const allowed =
        exchange_clock::time_point(exchange_clock::duration(unit.deadline.load(std::memory_order_relaxed))) - unit.submitted;
    std::vector<int> culprits = missing_of(unit);
    std::vector<std::string> names;
    auto const name = [&](int rank, std::string_view why) { names.push_back(fmt::format("{}: {}", name_of(rank), why)); };
    std::erase(culprits, ranks_.rank());  // no rank has heard yet of what it has submitted since
    if (stuck && !late.empty()) {
        // Nor has any rank heard of what others have submitted: those are not at fault then.
        std::erase_if(culprits, [&](int rank) {
            return std::none_of(late.begin(), late.end(), [&](late_rank const& each) { return each.rank == rank; });
        });
    }
    for (int const rank : culprits) {
        auto const why = std::find_if(late.begin(), late.end(), [&](late_rank const& each) { return each.rank == rank; });
        name(rank, why == late.end() ? "it has not submitted it" : "it has not submitted it; " + why->why);
    }
    if (culprits.empty()) {
        culprits = ranks_of(late);
        for (auto const& each : late) name(each.rank, each.why);
    }
    std::string const why = names.empty() ? "some rank is late, has failed, or has not submitted it; look at the other ranks"
                                          : "waiting for " + join(names, "; ");
    std::string const now = coordinator_.waiting().empty() ? "" : " Now " + coordinator_.who_waits_in_what() + ".";
    return comm_error(errc::timeout,
                      fmt::format("{}: timed out, not finished within its timeout of {}; {}.{} Look at what the late ranks do, "
                                  "or give a longer deadline (MUSTER_COMM_DEADLINE)",
                                  describe_unit(unit), format_duration(allowed), why, now),
                      std::move(culprits));
}

bool overdue_watch::is_time_for_stalls(exchange_clock::time_point now) {
    if (tell_stall_ == exchange_clock::duration::max() ||
        now - last_stall_check_ < std::min<exchange_clock::duration>(tell_stall_ / 4, 1s))
        return false;
    last_stall_check_ = now;
    return true;
}

void overdue_watch::warn_of_stalls(std::unordered_map<std::string, pending_ptr> const& announced,
                                   exchange_clock::time_point now) const {
    auto const warning = to_clock(shared_.options.stall_warning);
    if (warning.count() <= 0) return;
    bool due = false;
    for (auto const& [name, each] : announced) due = due || (!each->stall_told && now - each->submitted > warning);
    if (!due) return;
    for (auto const& each : coordinator_.waiting()) {
        auto const found = announced.find(each.what.name);
        if (found == announced.end() || found->second->stall_told || now - found->second->submitted <= warning) continue;
        found->second->stall_told = true;
        counters::add(shared_.count.stalls);
        int lowest = 0;  // one of those who wait tells it
        while (std::find(each.missing.begin(), each.missing.end(), lowest) != each.missing.end()) ++lowest;
        if (lowest != ranks_.rank()) continue;
        std::vector<std::string> names;
        for (int const rank : each.missing) names.push_back(name_of(rank));
        spdlog::warn("{}: submitted {} ago (MUSTER_STALL_WARNING) and still missing on {}; all others wait for them",
                     describe(each.what.kind, each.what.name), format_duration(now - found->second->submitted),
                     join(names, ", "));
    }
}

}  // namespace muster::detail
