#include "launch/keep/copy_rounds.hpp"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

constexpr std::uint64_t farthest_ahead = 1024;

}  // namespace

void copy_rounds::on_there(std::size_t which, bool expected) {
    nodes_.at(which) = {.there = true, .expected = expected};
}

void copy_rounds::on_lost(std::size_t which, bool returns) {
    auto& one = nodes_.at(which);
    bool const counts = one.there;  // it may be the next one of another
    one = {.returns = returns};
    if (counts && (phase_ == phase::holding || phase_ == phase::sending)) fail();
    try_begin();
}

void copy_rounds::on_newest(std::size_t which, std::uint64_t step) {
    auto& one = nodes_.at(which);
    if (one.newest != 0 || step != 0) one.expected = false;
    one.newest = step;
    if (step != 0 && step < last_) begin_again();
    try_begin();
}

/// The program has, with smaller numbers: what other nodes have told is of before.
void copy_rounds::begin_again() {
    for (auto& one : nodes_)
        if (one.newest >= last_) one.newest = 0, one.expected = true;
    last_ = 0;
}

void copy_rounds::try_begin() {
    if (phase_ != phase::idle || std::count_if(nodes_.begin(), nodes_.end(), [](node const& one) { return one.there; }) < 2)
        return;
    std::uint64_t least = UINT64_MAX, most = 0;
    for (auto const& one : nodes_) {
        if (one.returns || (one.there && one.expected)) return;
        if (!one.there || one.newest == 0) continue;
        least = std::min(least, one.newest);
        most = std::max(most, one.newest);
    }
    if (most == 0 || least <= last_) return;
    auto const from = std::exchange(late_, false) ? least : most + ahead_;
    phase_ = phase::holding;
    ++round_;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        auto& one = nodes_[i];
        one.part = one.there && one.newest != 0;
        one.done = false;
        if (one.part) orders_.push_back({i, order::kind::hold, round_, from});
    }
}

bool copy_rounds::all_done() const {
    return std::all_of(nodes_.begin(), nodes_.end(), [](node const& one) { return !one.part || one.done; });
}

void copy_rounds::on_held(std::size_t which, std::uint64_t round, std::uint64_t step) {
    auto& one = nodes_.at(which);
    if (phase_ != phase::holding || round != round_ || !one.part) return;
    if (step == 0) {
        ahead_ = std::clamp<std::uint64_t>(2 * ahead_, 1, farthest_ahead);
        return fail();
    }
    one.held = step;
    one.done = true;
    if (all_done()) send_if_all_hold();
}

void copy_rounds::send_if_all_hold() {
    std::uint64_t least = UINT64_MAX, most = 0;
    for (auto const& one : nodes_) {
        if (!one.part) continue;
        least = std::min(least, one.held);
        most = std::max(most, one.held);
    }
    if (least != most) {
        ahead_ = std::clamp<std::uint64_t>(2 * ahead_, 1, farthest_ahead);
        return fail();
    }
    phase_ = phase::sending;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        nodes_[i].done = false;
        if (nodes_[i].part) orders_.push_back({i, order::kind::send, round_, most, next_of(i)});
    }
}

void copy_rounds::on_sent(std::size_t which, std::uint64_t round, bool whole) {
    auto& one = nodes_.at(which);
    if (phase_ != phase::sending || round != round_ || !one.part) return;
    if (!whole) return fail();
    one.done = true;
    if (!all_done()) return;
    for (auto const& each : nodes_)
        if (each.part) last_ = each.held;
    ahead_ /= 2;
    phase_ = phase::idle;
    release(last_);
    try_begin();
}

void copy_rounds::on_late(std::uint64_t round) {
    if (phase_ != phase::holding || round != round_) return;
    ahead_ = 0;
    late_ = true;
    fail();
    try_begin();
}

/// Another begins with what keepers tell next: after an order to release they say again what is committed.
void copy_rounds::fail() {
    phase_ = phase::idle;
    release(last_);
}

void copy_rounds::release(std::uint64_t step) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        nodes_[i].part = false;
        if (nodes_[i].there) orders_.push_back({i, order::kind::release, round_, step});
    }
}

void copy_rounds::pause() {
    if (phase_ == phase::holding || phase_ == phase::sending) fail();
    phase_ = phase::paused;
    for (auto& one : nodes_) one.newest = 0;
}

void copy_rounds::go_on(std::uint64_t step, std::vector<bool> const& have_ranks) {
    last_ = step;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        nodes_[i].expected = have_ranks.at(i);
        nodes_[i].newest = 0;  // what came in the meantime was of ranks that have gone
    }
    phase_ = phase::idle;
}

/// The next one that is there, around the end.
std::size_t copy_rounds::next_of(std::size_t which) const {
    for (std::size_t i = 1; i < nodes_.size(); ++i)
        if (auto const next = (which + i) % nodes_.size(); nodes_[next].there) return next;
    return which;
}

std::vector<copy_rounds::order> copy_rounds::take_orders() {
    return std::exchange(orders_, {});
}

}  // namespace muster
