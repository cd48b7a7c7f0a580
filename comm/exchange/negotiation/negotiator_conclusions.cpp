// Conclusions that a negotiator draws from a round: the same on all ranks.
#include <fmt/format.h>

#include <algorithm>

#include "comm/backend/comm_error.hpp"
#include "comm/exchange/negotiation/negotiator.hpp"
#include "comm/exchange/request/request_codec.hpp"

namespace muster::detail {

void negotiator::take_hits() {
    std::size_t const positions = all_.size() - header_bytes;
    std::uint8_t const* const bits = all_.data() + header_bytes;
    bool removed = false;
    for (response_cache::position at = 0; at < positions; ++at) {
        if (bits[at] == 1) continue;
        if (cache_.is_free(at)) continue;
        pending_ptr unit = at < hits_.size() ? std::move(hits_[at]) : nullptr;
        if (at < hits_.size()) hits_[at] = nullptr;
        removed = removed || unit != nullptr;
        if (bits[at] == 0) {
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
    std::size_t const bytes = messages_.size() / static_cast<std::size_t>(ranks_.size());
    bool const someone_had_left = coordinator_.anyone_left();
    for (int rank = 0; rank < ranks_.size(); ++rank) {
        std::span const from(messages_.data() + static_cast<std::size_t>(rank) * bytes, bytes);
        for (auto& each : decode_requests(from)) coordinator_.announce(rank, std::move(each));
    }
    for (auto& each : coordinator_.take_ready()) conclude(std::move(each));
    if (coordinator_.anyone_left() && !someone_had_left) forget_cache();
    phase_ = phase::running;
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
    set_failed(*unit, code, fmt::format("rank {} of {} on {}: {}", ranks_.rank(), ranks_.size(), ranks_.who().host, fault),
               culprits);
    shared_.finished.finish({&unit, 1});
}

void negotiator::conclude(agreement&& each) {
    pending_ptr unit;
    if (auto const found = announced_.find(each.what.name); found != announced_.end()) {
        unit = std::move(found->second);
        announced_.erase(found);
    }
    if (each.what.kind == exchange_kind::join) joined_ = false;
    if (!each.fault.empty()) {
        if (unit) fail_unit(unit, errc::peer_failed, each.fault, each.culprits);
        return;
    }
    switch (each.what.kind) {
        case exchange_kind::join:
            if (unit) unit->number = each.last;
            if (unit) unit->has_extras = true;
            break;
        case exchange_kind::make_set:
        case exchange_kind::include: {
            std::vector<int> members;
            for (std::int64_t const rank : each.what.numbers) members.push_back(static_cast<int>(rank));
            int const number = calls_.make_set(ranks_, members, each.what.kind == exchange_kind::make_set);
            if (unit) unit->number = number;
            if (unit) unit->has_extras = true;
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
            std::vector<int> culprits;
            for (std::int64_t const rank : each.what.numbers) culprits.push_back(static_cast<int>(rank));
            throw comm_error(errc::timeout, each.what.tensors.at(0).name, std::move(culprits));
        }
        case exchange_kind::prepare: {
            // What is agreed on is the allreduce, which is in the cache when it is started.
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
    productive_ = true;
    if (unit) {
        agreeing_wait_ns_ += static_cast<std::uint64_t>(trace_time(round_ended_) - trace_time(unit->submitted));
        if (shared_.trace.running())
            shared_.trace.add({trace_kind::negotiate, shared_.trace.intern(recorded_name(*unit->what)),
                               shared_.trace.intern(to_string(unit->what->kind)), ++trace_id_, trace_time(unit->submitted),
                               trace_time(round_ended_), 0});
        unit->announced = round_ended_;
    }
    ready_.push_back(std::move(what));
    units_.push_back(std::move(unit));
}

}  // namespace muster::detail
