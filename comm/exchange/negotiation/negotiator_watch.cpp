// The watch of a negotiator: finds deadlines that pass, tensors that are missing, ranks that have died.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/exchange/negotiation/negotiator.hpp"

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

bool negotiator::advance(operation& what, exchange_clock::time_point now) {
    if (what.done()) return true;
    check_for_dead(what, operation_began_, now);
    return false;
}

std::string negotiator::describe_unit(pending_request const& unit) const {
    std::string group;
    if (unit.many)
        group = fmt::format(" ({} tensors, \"{}\" … \"{}\")", unit.many->size(), unit.what->tensors.front().name,
                            unit.what->tensors.back().name);
    return fmt::format("{}{} (rank {} of {} on {})", describe(unit.what->kind, unit.what->name), group, ranks_.rank(),
                       ranks_.size(), ranks_.who().host);
}

std::string negotiator::name_of(int rank) const {
    return fmt::format("rank {} ({})", rank, places_.at(static_cast<std::size_t>(rank)));
}

template <typename Body>
void negotiator::for_pending(Body&& body) const {
    for (auto const& each : waiting_) body(each);
    for (auto const at : hit_positions_)
        if (at < hits_.size() && hits_[at]) body(hits_[at]);
    for (auto const& [name, each] : announced_) body(each);
    for (auto const* const units : {&units_, &runner_.units()})
        for (auto const& each : *units)
            if (each) body(each);
    for (auto const& batch : runner_.handed())
        for (auto const& each : batch.ends)
            if (each.what) body(each.what);
}

/// A rank whose process is gone is not waited for until the deadline.
void negotiator::check_for_dead(operation const& what, exchange_clock::time_point began, exchange_clock::time_point now) {
    auto const late = watch_.find_dead(what, began, now);
    if (late.empty()) return;
    std::vector<std::string> names;
    for (auto const& each : late)
        names.push_back(name_of(each.rank) + ": " + each.why);
    std::string unfinished = "the next round of negotiation";
    for_pending([&](pending_ptr const& unit) {
        if (unfinished.starts_with("the next")) unfinished = describe(unit->what->kind, unit->what->name);
    });
    throw comm_error(errc::peer_failed,
                     fmt::format("{} (rank {} of {} on {}) cannot finish: {}; look at what that rank wrote last", unfinished,
                                 ranks_.rank(), ranks_.size(), ranks_.who().host, join(names, "; ")),
                     ranks_of(late));
}

void negotiator::check_deadlines(exchange_clock::time_point now) {
    pending_request const* expired = nullptr;
    for_pending([&](pending_ptr const& unit) {
        auto const deadline = unit->deadline.load(std::memory_order_relaxed);
        if (deadline == 0 || now.time_since_epoch().count() < deadline) return;
        if (expired == nullptr || deadline < expired->deadline.load(std::memory_order_relaxed)) expired = unit.get();
    });
    if (expired != nullptr) give_up(*expired, now);
}

/// All ranks are to end with the same message, so it is sent in the next round; a cached request is announced in full before, so
/// that all see who is missing. Where the round does not come about, this rank ends by itself.
void negotiator::give_up(pending_request const& expired, exchange_clock::time_point now) {
    if (!expired_since_) expired_since_ = now;
    duration const quarter = shared_.options.deadline / 4;
    auto const patience = std::min<exchange_clock::duration>(quarter.count() > 0 ? to_clock(quarter) : 1s, 1s);
    auto const& late = late_ranks();
    bool const dead = std::any_of(late.begin(), late.end(), [](late_rank const& each) { return each.dead; });
    if (dead || now - *expired_since_ >= patience) throw deadline_error(expired, true);
    if (gave_up_) return;
    if (missing_of(expired).empty()) {
        if (cache_.holds(expired.cache_place, expired.what)) outdated_.push_back(expired.cache_place);
        return;
    }
    auto const told = deadline_error(expired, false);
    auto what = std::make_shared<exchange_request>();
    what->kind = exchange_kind::give_up;
    what->name = std::string(1, internal_name) + "give up";
    what->tensors = {{told.what(), dtype::u8, memory_kind::host, flat_shape(0)}};
    what->numbers.assign(told.culprits().begin(), told.culprits().end());
    auto ask = pending_ptr::make();
    ask->what = std::move(what);
    ask->set = set_;
    ask->submitted = now;
    gave_up_ = true;
    submit(std::move(ask));
}

std::vector<int> negotiator::missing_of(pending_request const& unit) const {
    for (auto const& each : coordinator_.waiting())
        if (each.what.name == unit.what->name) return each.missing;
    return {};
}

std::vector<late_rank> negotiator::late_ranks() {
    if (runner_.has_handed()) {
        auto late = runner_.handed().front().under_way.late_ranks();
        if (!late.empty()) return late;
    }
    if (phase_ == phase::idle) return {};
    return (runner_.has_started() ? runner_.under_way() : operation_).late_ranks();
}

/// `stuck`: the round of negotiation does not end either.
comm_error negotiator::deadline_error(pending_request const& unit, bool stuck) {
    duration const allowed =
        exchange_clock::time_point(exchange_clock::duration(unit.deadline.load(std::memory_order_relaxed))) - unit.submitted;
    auto const late = late_ranks();
    std::vector<int> culprits = missing_of(unit);
    std::vector<std::string> names;
    auto const name = [&](int rank, std::string_view why) {
        names.push_back(fmt::format("{}: {}", name_of(rank), why));
    };
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
    return comm_error(errc::timeout,
                      fmt::format("{}: not finished within {}; {}. Or give a longer deadline", describe_unit(unit),
                                  format_duration(allowed), why),
                      std::move(culprits));
}

void negotiator::check_stalls(exchange_clock::time_point now) {
    if (tell_stall_ == exchange_clock::duration::max() ||
        now - last_stall_check_ < std::min<exchange_clock::duration>(tell_stall_ / 4, 1s))
        return;
    last_stall_check_ = now;
    // What is cached is told in full from now on, so that all ranks see who is missing.
    for (auto const at : hit_positions_)
        if (at < hits_.size() && hits_[at] && now - hits_[at]->submitted > tell_stall_) outdated_.push_back(at);
    auto const warning = std::chrono::duration_cast<exchange_clock::duration>(shared_.options.stall_warning);
    if (warning.count() <= 0) return;
    bool due = false;
    for (auto const& [name, each] : announced_) due = due || (!each->stall_told && now - each->submitted > warning);
    if (!due) return;
    for (auto const& each : coordinator_.waiting()) {
        auto const found = announced_.find(each.what.name);
        if (found == announced_.end() || found->second->stall_told || now - found->second->submitted <= warning) continue;
        found->second->stall_told = true;
        counters::add(shared_.count.stalls);
        int lowest = 0;  // one of those who wait tells it
        while (std::find(each.missing.begin(), each.missing.end(), lowest) != each.missing.end()) ++lowest;
        if (lowest != ranks_.rank()) continue;
        std::vector<std::string> names;
        for (int const rank : each.missing) names.push_back(name_of(rank));
        spdlog::warn("{}: submitted {} ago and still missing on {}; all others wait for them",
                     describe(each.what.kind, each.what.name), format_duration(now - found->second->submitted),
                     join(names, ", "));
    }
}

void negotiator::give_back(std::vector<pending_ptr>& into) {
    for_pending([&](pending_ptr const& each) { into.push_back(each); });
    waiting_.clear();
    announced_.clear();
    hits_.clear();
    hit_positions_.clear();
    units_.clear();
}

void negotiator::leak() noexcept {
    try {
        operation_.wait(duration{1e-9});  // gives it up: its destructor would wait for ranks that have failed
    } catch (...) {
    }
    runner_.leak();
    if (phase_ == phase::idle) return;
    static_cast<void>(new std::vector<std::uint8_t>(std::move(all_)));
    static_cast<void>(new std::vector<std::uint8_t>(std::move(mine_)));
    static_cast<void>(new std::vector<std::byte>(std::move(message_)));
    static_cast<void>(new std::vector<std::byte>(std::move(messages_)));
}

}  // namespace muster::detail
