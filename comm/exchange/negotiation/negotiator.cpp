#include "comm/exchange/negotiation/negotiator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/exchange/request/request_codec.hpp"

namespace muster::detail {

namespace {

using namespace std::chrono_literals;

/// How often an idle rank enters a round. Nothing can become ready without it, so only joins and ends wait for this.
constexpr auto heartbeat = 100ms;
/// Between rounds in which nothing happened, at most.
constexpr auto longest_pause = 1ms;
constexpr auto between_checks = 5ms;

/// Messages are padded to 64, 128, 256, … bytes: 1, 2, 3, …; 0 for none.
std::uint8_t size_class(std::size_t bytes) {
    std::uint8_t of = 0;
    if (bytes != 0)
        for (of = 1; (std::size_t{64} << (of - 1)) < bytes;) ++of;
    return of;
}
std::size_t padded_bytes(std::uint8_t of) {
    return of == 0 ? 0 : std::size_t{64} << (of - 1);
}

exchange_clock::duration ticks(duration seconds) {
    return std::chrono::duration_cast<exchange_clock::duration>(seconds);
}

std::vector<std::byte> encode_all(std::vector<shared_request> const& all) {
    std::vector<exchange_request> copies;
    copies.reserve(all.size());
    for (auto const& each : all) copies.push_back(*each);
    return encode(copies);
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
      runner_(set, ranks_, shared) {
    duration tell = shared.options.stall_warning;
    duration const quarter = shared.options.deadline / 4;
    if (tell.count() <= 0 || (quarter.count() > 0 && quarter < tell)) tell = quarter;
    tell_stall_ = tell.count() > 0 ? ticks(tell) : exchange_clock::duration::max();
}

void step_result::add(step_result const& other) noexcept {
    moved = moved || other.moved;
    busy = busy || other.busy;
    data = data || other.data;
    // Only if the earliest that is waited for is the end of gathering.
    if (other.wake < wake) gathering = other.gathering;
    wake = std::min(wake, other.wake);
}

void negotiator::submit(pending_ptr one) {
    exchange_kind const kind = one->what->kind;
    if (kind == exchange_kind::join) joined_ = true;
    if (kind == exchange_kind::leave) leaving_ = true;
    waiting_bytes_ += one->bytes;
    hurry_ = hurry_ || kind >= exchange_kind::barrier || one->many || one->waited.load(std::memory_order_relaxed);
    waiting_.push_back(std::move(one));
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
    }
    switch (phase_) {
        case phase::idle: {
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
        case phase::agreeing:
        case phase::gathering:
            result.busy = true;
            if (!advance(operation_, now)) return result;
            if (phase_ == phase::agreeing)
                finish_round(now);
            else
                take_announcements();
            if (phase_ == phase::running) plan();
            result.moved = true;
            return result;
        case phase::running:
            result.busy = result.data = true;
            result.moved = run_batches();
            if (phase_ == phase::running && runner_.has_started()) check_for_dead(runner_.under_way(), runner_.began(), now);
            return result;
    }
    return result;
}

/// Whether waiting requests are to be negotiated now rather than gathered further.
bool negotiator::flushes(exchange_clock::time_point now) const {
    return hurry_ || waiting_bytes_ >= shared_.options.fusion_bytes || now - waiting_.front()->submitted >= cycle_time_;
}

/// When to enter the next round.
exchange_clock::time_point negotiator::due(exchange_clock::time_point now) const {
    auto at = last_round_ + heartbeat;
    if (!waiting_.empty() && !leaving_) at = std::min(at, flushes(now) ? now : waiting_.front()->submitted + cycle_time_);
    if (!announced_.empty() || !hit_positions_.empty() || joined_ || leaving_) at = std::min(at, last_round_ + pause_);
    return at;
}

/// Where the cache has what a request repeats: where it was the last time, if it is the very same request; else by name.
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
    // Who leaves does so when nothing of its own is left to be done.
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
        to_announce_.push_back(each->what);
        announced_.insert_or_assign(each->what->name, std::move(each));
    }
    counters::add(shared_.count.cache_hits, hits);
    counters::add(shared_.count.cache_misses, misses);
    std::swap(waiting_, held_back_);
    waiting_bytes_ = 0;
}

void negotiator::enter_round(exchange_clock::time_point now) {
    productive_ = !waiting_.empty() && !leaving_;
    hurry_ = false;
    round_began_ = now;
    sort_waiting();
    check_stalls(now);
    message_.clear();
    if (!to_announce_.empty()) message_ = encode_all(to_announce_);
    mine_.assign(header_bytes + cache_.positions(), 1);
    mine_[0] = static_cast<std::uint8_t>(255 - size_class(message_.size()));
    // Not before the others have heard of it: they would believe that this rank has a tensor.
    if (coordinator_.is_joined(ranks_.rank())) std::fill(mine_.begin() + header_bytes, mine_.end(), std::uint8_t{2});
    for (auto const at : hit_positions_) mine_[header_bytes + at] = 2;
    for (auto const at : outdated_) mine_[header_bytes + at] = 0;
    outdated_.clear();
    all_.resize(mine_.size());
    counters::add(shared_.count.rounds);
    operation_began_ = now;
    operation_ = ranks_.allreduce("negotiation", view_of(std::span(mine_)), view_of(std::span(all_)), reduction::min);
    phase_ = phase::agreeing;
}

void negotiator::finish_round(exchange_clock::time_point now) {
    last_round_ = now;
    round_ended_ = exchange_clock::now();
    take_hits();
    auto const of = static_cast<std::uint8_t>(255 - all_[0]);
    if (of == 0) {
        phase_ = phase::running;
        return;
    }
    counters::add(shared_.count.full_rounds);
    std::size_t const bytes = padded_bytes(of);
    message_.resize(bytes);
    if (to_announce_.empty()) std::fill(message_.begin(), message_.end(), std::byte{0});  // none, encoded
    to_announce_.clear();
    messages_.resize(bytes * static_cast<std::size_t>(ranks_.size()));
    auto const view = [](std::vector<std::byte>& of_bytes) {
        return tensor_view{of_bytes.data(), of_bytes.size(), dtype::u8, memory_kind::host};
    };
    operation_began_ = now;
    operation_ = ranks_.allgather("negotiation", view(message_), view(messages_));
    phase_ = phase::gathering;
}

/// The round has ended: what it has brought becomes batches.
void negotiator::plan() {
    auto const end = exchange_clock::now();
    last_round_ = end;
    if (shared_.trace.running() && shared_.trace.marks_cycles())
        shared_.trace.add({trace_kind::cycle, 0, 0, 0, trace_time(round_began_), trace_time(end), 0});
    if (productive_)
        pause_ = exchange_clock::duration(0);
    else
        pause_ = std::clamp<exchange_clock::duration>(pause_ * 2, 20us, longest_pause);
    if (!ready_.empty()) {
        counters::add(shared_.count.negotiation_ns, std::exchange(agreeing_wait_ns_, 0));
        counters::add(shared_.count.agreeing_rounds);
        counters::add(shared_.count.agreeing_ns, static_cast<std::uint64_t>(trace_time(end) - trace_time(round_began_)));
    }
    if (ready_.empty()) {
        phase_ = phase::idle;
        return;
    }
    runner_.load(std::exchange(ready_, {}), std::exchange(units_, {}));
}

bool negotiator::run_batches() {
    bool moved = false;
    while (!runner_.ended()) {
        if (!runner_.advance()) return moved;
        moved = true;
    }
    phase_ = phase::idle;
    return true;
}

}  // namespace muster::detail
