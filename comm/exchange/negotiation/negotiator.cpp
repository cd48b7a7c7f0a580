#include "comm/exchange/negotiation/negotiator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/speaker.hpp"

namespace muster::detail {

namespace {

using namespace std::chrono_literals;

/// The interval at which an idle rank enters a round. Nothing can become ready without it, so only joins and ends wait for this.
constexpr auto heartbeat = 100ms;
/// Between rounds in which nothing happened, at most.
constexpr auto longest_pause = 1ms;
constexpr auto between_checks = 5ms;

exchange_clock::duration ticks(duration seconds) {
    return std::chrono::duration_cast<exchange_clock::duration>(seconds);
}

/// Since the epoch, of a time of the steady clock.
std::int64_t epoch_us(exchange_clock::time_point at) {
    auto const now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now - (exchange_clock::now() - at)).count();
}

}  // namespace

negotiator::negotiator(int set, communicator ranks, exchange_context& shared, std::vector<std::string> places, hooks calls)
    : set_(set),
      ranks_(std::move(ranks)),
      shared_(shared),
      places_(std::move(places)),
      calls_(std::move(calls)),
      cycle_time_(ticks(shared.options.cycle_time)),
      coordinator_(places_),
      cache_(shared.options.cache_capacity),
      last_round_(exchange_clock::now()),
      runner_(set, ranks_, shared),
      watch_(ranks_, places_, coordinator_, shared) {}

void step_result::add(step_result const& other) noexcept {
    moved = moved || other.moved;
    busy = busy || other.busy;
    data = data || other.data;
    // This counts only if the end of gathering comes first.
    if (other.wake < wake) gathering = other.gathering;
    wake = std::min(wake, other.wake);
}

void negotiator::submit(pending_ptr one) {
    exchange_kind const kind = one->what->kind;
    if (kind == exchange_kind::leave) take(pace_event::leaves);
    if (kind >= exchange_kind::barrier || one->many || one->waited.load(std::memory_order_relaxed))
        take(pace_event::is_waited_for);
    waiting_bytes_ += one->bytes;
    waiting_.push_back(std::move(one));
}

/// Follows the table; an event without a row changes nothing.
void negotiator::take(negotiation_event what) {
    auto const* const row = find_row<negotiation_rows>(state_, what);
    if (row == nullptr) return;
    state_ = row->to;
    switch (row->then) {
        case negotiation_effect::none: return;
        case negotiation_effect::agree: operation_ = round_.agree(ranks_); return;
        case negotiation_effect::gather: operation_ = round_.gather(ranks_); return;
        case negotiation_effect::plan: return plan();
    }
}

step_result negotiator::step(exchange_clock::time_point now) {
    bool const ended = runner_.end_finished();
    step_result result = step_on(now);
    result.moved = result.moved || ended;
    if (!runner_.has_handed()) return result;
    result.busy = result.data = true;
    auto const& oldest = runner_.handed().front();
    check_for_dead(oldest.under_way, oldest.began, now);
    return result;
}

step_result negotiator::step_on(exchange_clock::time_point now) {
    step_result result;
    if (now - last_check_ > between_checks) {
        last_check_ = now;
        check_deadlines(now);
        count_waits(now);
    }
    switch (state_) {
        case negotiation_state::idle: {
            if (coordinator_.all_left()) return result;
            auto const at = due(now);
            if (at > now) {
                result.wake = at;
                result.gathering = !waiting_.empty();
                return result;
            }
            enter_round(now);
            result.moved = true;
            return result;
        }
        case negotiation_state::agreeing:
        case negotiation_state::gathering:
            result.busy = true;
            if (!advance(operation_, now)) return result;
            if (state_ == negotiation_state::agreeing)
                finish_round(now);
            else
                take_announcements();
            result.moved = true;
            return result;
        case negotiation_state::running:
            result.busy = result.data = true;
            result.moved = run_batches();
            if (state_ == negotiation_state::running && runner_.has_started())
                check_for_dead(runner_.under_way(), runner_.began(), now);
            return result;
    }
    return result;
}

/// Returns whether to negotiate waiting requests now rather than gather more.
bool negotiator::flushes(exchange_clock::time_point now) const {
    return pace_ == request_pace::hurry || waiting_bytes_ >= shared_.options.fusion_bytes ||
           now - waiting_.front()->submitted >= cycle_time_;
}

/// Returns when to enter the next round.
exchange_clock::time_point negotiator::due(exchange_clock::time_point now) const {
    auto at = last_round_ + heartbeat;
    bool const leaves = pace_ == request_pace::leave;
    if (!waiting_.empty() && !leaves) at = std::min(at, flushes(now) ? now : waiting_.front()->submitted + cycle_time_);
    if (!announced_.empty() || !hit_positions_.empty() || leaves) at = std::min(at, last_round_ + pause_);
    return at;
}

/// Returns the cache's position for a repeated request: the last one if it is the same object, else by name.
std::optional<response_cache::position> negotiator::find_cached(pending_request& one) {
    if (cache_.holds(one.cache_place, one.what)) return one.cache_place;
    auto const found = cache_.find(one.what->name);
    if (!found) return std::nullopt;
    if (!cache_.repeats(*found, *one.what)) {
        outdated_.push_back(*found);
        return std::nullopt;
    }
    cache_.replace_mine(*found, one.what);
    one.cache_place = *found;
    return found;
}

/// Requests that the cache knows become a bit each, the others an announcement.
void negotiator::sort_waiting() {
    auto const now = exchange_clock::now();
    // A rank leaves only when it has nothing left to do.
    bool const others = waiting_.size() > 1 || !hit_positions_.empty() || !announced_.empty() || runner_.has_handed();
    std::uint64_t hits = 0, misses = 0;
    held_back_.clear();
    for (auto& each : waiting_) {
        if (each->what->kind == exchange_kind::leave && others) {
            held_back_.push_back(std::move(each));
            continue;
        }
        each->announced = now;
        if (auto const at = find_cached(*each)) {
            ++hits;
            if (hits_.size() < cache_.positions()) hits_.resize(cache_.positions());
            hits_[*at] = std::move(each);
            hit_positions_.push_back(*at);
            continue;
        }
        if (is_cacheable(each->what->kind)) ++misses;
        to_announce_.push_back(*each->what);
        to_announce_.back().since_us = epoch_us(each->submitted);
        announced_.insert_or_assign(each->what->name, std::move(each));
    }
    counters::add(shared_.count.cache_hits, hits);
    counters::add(shared_.count.cache_misses, misses);
    std::swap(waiting_, held_back_);
    waiting_bytes_ = 0;
}

void negotiator::enter_round(exchange_clock::time_point now) {
    yield_ = waiting_.empty() || pace_ == request_pace::leave ? round_yield::nothing : round_yield::requests;
    take(pace_event::enters_round);
    round_began_ = now;
    sort_waiting();
    check_stalls(now);
    round_.begin(cache_.positions(), to_announce_);
    to_announce_.clear();
    if (hit_positions_.empty()) round_.state(negotiation_round::told);
    if (waiting_.empty() && !runner_.has_handed() && calls_.caller_waits(set_)) round_.state(negotiation_round::waits);
    // This waits until the others know of it: they would believe that this rank has a tensor.
    if (coordinator_.is_joined(ranks_.rank())) round_.cast_everywhere(negotiation_round::submitted);
    for (auto const at : hit_positions_) round_.cast(at, negotiation_round::submitted);
    for (auto const at : outdated_) round_.cast(at, negotiation_round::outdated);
    outdated_.clear();
    counters::add(shared_.count.rounds);
    operation_began_ = now;
    take(negotiation_event::round_is_due);
}

void negotiator::finish_round(exchange_clock::time_point now) {
    last_round_ = now;
    round_ended_ = exchange_clock::now();
    take_hits();
    if (!round_.has_announcements()) {
        end_what_never_meets();
        return take(negotiation_event::is_agreed);
    }
    counters::add(shared_.count.full_rounds);
    operation_began_ = now;
    take(negotiation_event::some_announce);
}

/// The round has ended: what it has brought becomes batches.
void negotiator::plan() {
    auto const end = exchange_clock::now();
    last_round_ = end;
    if (shared_.trace.running() && shared_.trace.marks_cycles())
        shared_.trace.add({trace_kind::cycle, 0, 0, 0, trace_time(round_began_), trace_time(end), 0});
    if (yield_ != round_yield::nothing)
        pause_ = exchange_clock::duration(0);
    else
        pause_ = std::clamp<exchange_clock::duration>(pause_ * 2, 20us, longest_pause);
    if (!ready_.empty()) {
        counters::add(shared_.count.negotiation_ns, std::exchange(agreeing_wait_ns_, 0));
        if (shared_.waits && waited_.count() > 0) {
            shared_.waits->add_time(std::exchange(waited_, {}), -1);
            shared_.waits->add_wait(-1);
        }
        counters::add(shared_.count.agreeing_rounds);
        counters::add(shared_.count.agreeing_ns, static_cast<std::uint64_t>(trace_time(end) - trace_time(round_began_)));
    }
    if (ready_.empty()) return take(negotiation_event::nothing_is_ready);
    runner_.load(std::exchange(ready_, {}), std::exchange(units_, {}));
}

/// Requests that other ranks have not submitted yet wait, and this may go on for long.
void negotiator::count_waits(exchange_clock::time_point now) {
    constexpr duration between_counts{0.5};
    if (!shared_.waits || now - shared_.waits_counted_until < between_counts) return;
    auto since = now;
    auto const look = [&](pending_ptr const& one) {
        if (one) since = std::min(since, one->submitted);
    };
    for (auto const& each : waiting_) look(each);
    for (auto const at : hit_positions_)
        if (at < hits_.size()) look(hits_[at]);
    for (auto const& [name, each] : announced_) look(each);
    since = std::max(since, shared_.waits_counted_until);
    if (now - since < between_counts) return;
    shared_.waits->add_time(now - since, -1);
    shared_.waits_counted_until = now;
}

bool negotiator::run_batches() {
    bool moved = false;
    while (!runner_.ended()) {
        if (!runner_.advance()) return moved;
        moved = true;
    }
    take(negotiation_event::all_has_run);
    return true;
}

void negotiator::take_hits() {
    bool removed = false;
    for (response_cache::position at = 0; at < round_.positions(); ++at) {
        auto const vote = round_.result(at);
        if (vote == negotiation_round::not_yet) continue;
        if (cache_.is_free(at)) continue;
        yield_ = round_yield::results;
        pending_ptr unit = at < hits_.size() ? std::move(hits_[at]) : nullptr;
        if (at < hits_.size()) hits_[at] = nullptr;
        removed = removed || unit != nullptr;
        if (vote == negotiation_round::outdated) {
            // On some rank the request is another now, or some rank asks who is missing: it is announced anew.
            cache_.erase(at);
            if (unit) waiting_.push_back(std::move(unit));
            continue;
        }
        cache_.touch(at);
        auto what = cache_.at(at);
        if (coordinator_.anyone_joined()) {
            auto revised = std::make_shared<agreement>(coordinator_.revise(*what));
            if (!revised->fault.empty()) {
                if (unit) fail_unit(unit, errc::peer_failed, revised->fault, revised->culprits);
                continue;
            }
            what = std::move(revised);
        }
        agreed_on(std::move(what), std::move(unit));
    }
    if (removed)
        std::erase_if(hit_positions_, [&](response_cache::position at) { return at >= hits_.size() || hits_[at] == nullptr; });
}

void negotiator::take_announcements() {
    round_ended_ = exchange_clock::now();
    bool const someone_had_left = coordinator_.anyone_left();
    for (int rank = 0; rank < ranks_.size(); ++rank)
        for (auto& each : round_.announcements_of(rank)) coordinator_.announce(rank, std::move(each));
    for (auto& each : coordinator_.take_ready()) {
        yield_ = round_yield::results;
        conclude(std::move(each));
    }
    if (coordinator_.anyone_left() && !someone_had_left) forget_cache();
    end_what_never_meets();
    take(negotiation_event::is_announced);
}

/// All ranks wait and this round has ended nothing, so that no later one will. All see it in the same round. Its errors show what each rank
/// waits in, so what is cached is announced in full before.
void negotiator::end_what_never_meets() {
    if (!round_.all_state(negotiation_round::waits) || yield_ == round_yield::results || coordinator_.anyone_left())
        return;  // who leaves is an error already
    if (!round_.all_state(negotiation_round::told)) {
        outdated_ = hit_positions_;
        return;
    }
    auto const verdict = coordinator_.never_meet(set_);
    calls_.forget_turns(set_);
    std::erase_if(announced_, [&](auto const& each) {
        pending_request const& unit = *each.second;
        if (unit.what->kind == exchange_kind::join) return false;  // its rank still has joined
        fail_unit(each.second, errc::peer_failed, describe(unit.what->kind, unit.what->name) + ": " + verdict.fault,
                  verdict.culprits);
        return true;
    });
}

/// No cached request can be done any more; announced in full it becomes an error that says so.
void negotiator::forget_cache() {
    cache_.clear();
    for (auto const at : hit_positions_) {
        if (at < hits_.size() && hits_[at]) waiting_.push_back(std::move(hits_[at]));
    }
    hits_.clear();
    hit_positions_.clear();
}

void negotiator::fail_unit(pending_ptr const& unit, errc code, std::string const& fault, std::vector<int> const& culprits) {
    counters::add(shared_.count.errors);
    set_failed(*unit, code, fmt::format("{}: {}", speaker(ranks_.who()), fault), culprits);
    shared_.finished.finish({&unit, 1});
}

void negotiator::conclude(agreement&& each) {
    pending_ptr unit;
    if (auto const found = announced_.find(each.what.name); found != announced_.end()) {
        unit = std::move(found->second);
        announced_.erase(found);
    }
    if (!each.fault.empty()) {
        if (unit) fail_unit(unit, errc::peer_failed, each.fault, each.culprits);
        return;
    }
    try {
        carry_out(std::move(each), unit);
    } catch (...) {  // it fails with the others, and whoever waits for it
        if (unit) waiting_.push_back(std::move(unit));
        throw;
    }
}

/// `unit`: what this rank has submitted of it, if anything.
void negotiator::carry_out(agreement&& each, pending_ptr& unit) {
    switch (each.what.kind) {
        case exchange_kind::join:
            if (unit) unit->number = each.last, unit->has_extras = true;
            break;
        case exchange_kind::make_set:
        case exchange_kind::include: {
            std::vector<int> const members(each.what.numbers.begin(), each.what.numbers.end());
            int const number = calls_.make_set(ranks_, members, each.what.kind == exchange_kind::make_set);
            if (unit) unit->number = number, unit->has_extras = true;
            break;
        }
        case exchange_kind::open_device: calls_.open_device(ranks_); break;
        case exchange_kind::remove_set: calls_.remove_set(each.what.root); break;
        case exchange_kind::message:
            if (unit) agreed_on(std::make_shared<agreement const>(std::move(each)), std::move(unit));
            return;  // the other ranks have no part in it
        default: {
            auto const shared = std::make_shared<agreement const>(std::move(each));
            if (shared->whole && unit && is_cacheable(shared->what.kind)) unit->cache_place = cache_.insert(shared, unit->what);
            return agreed_on(shared, std::move(unit));
        }
        case exchange_kind::give_up: {
            std::vector<int> const culprits(each.what.numbers.begin(), each.what.numbers.end());
            throw comm_error(errc::timeout, each.what.tensors.at(0).name, culprits);
        }
        case exchange_kind::prepare: {
            // The ranks agree on the allreduce, which is in the cache when it starts.
            if (!each.whole || !unit) break;
            auto started = std::make_shared<exchange_request>(*unit->what);
            started->kind = exchange_kind::allreduce;
            each.what.kind = exchange_kind::allreduce;
            cache_.insert(std::make_shared<agreement const>(std::move(each)), std::move(started));
            break;
        }
    }
    if (!unit) return;
    complete(*unit, shared_.count);
    shared_.finished.finish({&unit, 1});
}

void negotiator::agreed_on(std::shared_ptr<agreement const> what, pending_ptr unit) {
    if (unit) {
        agreeing_wait_ns_ += static_cast<std::uint64_t>(trace_time(round_ended_) - trace_time(unit->submitted));
        auto const since = std::max(unit->submitted, shared_.waits_counted_until);  // requests that wait together count once
        if (round_ended_ > since) {
            waited_ += round_ended_ - since;
            shared_.waits_counted_until = round_ended_;
        }
        if (shared_.trace.running())
            shared_.trace.add({trace_kind::negotiate, shared_.trace.intern(recorded_name(*unit->what)),
                               shared_.trace.intern(to_string(unit->what->kind)), ++trace_id_, trace_time(unit->submitted),
                               trace_time(round_ended_), 0});
        unit->announced = round_ended_;
    }
    ready_.push_back(std::move(what));
    units_.push_back(std::move(unit));
}

bool negotiator::advance(operation& what, exchange_clock::time_point now) {
    if (what.done()) return true;
    check_for_dead(what, operation_began_, now);
    return false;
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
    auto const dead = watch_.find_dead(what, began, now);
    if (dead.empty()) return;
    std::string unfinished = "the next round of negotiation";
    for_pending([&](pending_ptr const& unit) {
        if (unfinished.starts_with("the next")) unfinished = describe(unit->what->kind, unit->what->name);
    });
    throw watch_.death_error(unfinished, dead);
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
    auto const patience = std::min<exchange_clock::duration>(quarter.count() > 0 ? ticks(quarter) : 1s, 1s);
    auto const late = late_ranks();
    bool const dead = std::any_of(late.begin(), late.end(), [](late_rank const& each) { return each.dead; });
    if (dead || now - *expired_since_ >= patience) throw watch_.deadline_error(expired, late, true);
    bool are_told = false;
    for_pending([&](pending_ptr const& unit) { are_told = are_told || unit->what->kind == exchange_kind::give_up; });
    if (are_told) return;
    if (watch_.missing_of(expired).empty()) {
        if (cache_.holds(expired.cache_place, expired.what)) outdated_.push_back(expired.cache_place);
        return;
    }
    auto const told = watch_.deadline_error(expired, late, false);
    auto ask = pending_ptr::make_internal(exchange_kind::give_up, give_up_name, set_);
    auto what = std::make_shared<exchange_request>(*ask->what);
    what->tensors = {{told.what(), dtype::u8, memory_kind::host, flat_shape(0)}};
    what->numbers.assign(told.culprits().begin(), told.culprits().end());
    ask->what = std::move(what);
    submit(std::move(ask));
}

std::vector<late_rank> negotiator::late_ranks() {
    if (runner_.has_handed()) {
        auto late = runner_.handed().front().under_way.late_ranks();
        if (!late.empty()) return late;
    }
    if (state_ == negotiation_state::idle) return {};
    return (runner_.has_started() ? runner_.under_way() : operation_).late_ranks();
}

void negotiator::check_stalls(exchange_clock::time_point now) {
    if (!watch_.is_time_for_stalls(now)) return;
    for (auto const at : hit_positions_)
        if (at < hits_.size() && hits_[at] && watch_.is_stalling(*hits_[at], now)) outdated_.push_back(at);
    watch_.warn_of_stalls(announced_, now);
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
    if (state_ != negotiation_state::idle) round_.leak();
}

}  // namespace muster::detail
