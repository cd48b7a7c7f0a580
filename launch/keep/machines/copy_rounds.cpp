#include "launch/keep/machines/copy_rounds.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "launch/keep/machines/keeping_guards.hpp"

namespace muster {

namespace {

constexpr std::uint64_t farthest_ahead = 1024;
constexpr int most_told = 3;  ///< ranks commit together: with this many commits of some, others have none to come

using standing = copy_rounds::standing;
using node_event = copy_rounds::node_event;

struct row {
    standing from;
    node_event on;
    standing to;
};

/// An event without a row changes nothing.
constexpr std::array rows{
    row{standing::gone, node_event::comes, standing::there},
    row{standing::gone, node_event::comes_with_ranks, standing::awaited},
    row{standing::awaited, node_event::is_lost, standing::gone},
    row{standing::there, node_event::is_lost, standing::gone},
    row{standing::awaited, node_event::tells, standing::there},
    row{standing::there, node_event::is_asked, standing::asked},
    row{standing::awaited, node_event::is_asked, standing::asked},
    row{standing::asked, node_event::answers, standing::done},
    row{standing::done, node_event::is_asked, standing::asked},
    row{standing::asked, node_event::is_released, standing::there},
    row{standing::done, node_event::is_released, standing::there},
    row{standing::there, node_event::ranks_begin, standing::awaited},
    row{standing::awaited, node_event::no_ranks, standing::there},
};

}  // namespace

bool copy_rounds::change(node& one, node_event on) {
    auto const found =
        std::find_if(rows.begin(), rows.end(), [&](row const& each) { return each.from == one.now && each.on == on; });
    if (found != rows.end()) one.now = found->to;
    return found != rows.end();
}

void copy_rounds::on_there(std::size_t which, bool expected) {
    auto& one = nodes_.at(which);
    change(one, expected ? node_event::comes_with_ranks : node_event::comes);
    one.ranks_ended = false;
    one.newest = one.held = 0;
    if (expected) await_all_anew();
    if (phase_ == phase::idle && on_two_nodes_ == 0 && is_to_spread_again()) spread_last();
}

void copy_rounds::on_lost(std::size_t which) {
    auto& one = nodes_.at(which);
    bool const counts = one.is_there();  // it may be another node's next one
    bool const spread = counts && phase_ == phase::spreading;
    if (counts && is_under_way()) fail(which);
    change(one, node_event::is_lost);
    one.newest = one.held = 0;
    if (std::erase(have_first_, which) > 0) have_first_.clear();  // a part of it may be with a next node alone
    if (spread && is_to_spread_again()) return spread_last();
    try_begin();
}

void copy_rounds::on_newest(std::size_t which, std::uint64_t step) {
    auto& one = nodes_.at(which);
    if (!one.is_there()) return;
    if (one.newest != 0 || step != 0) change(one, node_event::tells);
    one.told += step > one.newest;
    one.newest = step;
    if (step != 0) one.ranks_ended = false;
    if (step != 0 && step < last_) begin_again();
    try_begin();
}

void copy_rounds::on_no_ranks(std::size_t which) {
    auto& one = nodes_.at(which);
    if (!one.is_there()) return;
    one.newest = 0;
    one.ranks_ended = true;
    change(one, node_event::no_ranks);
    try_begin();
}

/// The program has begun again with smaller numbers: what other nodes have reported is older.
void copy_rounds::begin_again() {
    if (is_under_way()) fail();
    for (auto& one : nodes_)
        if (one.newest >= last_) one.newest = 0, change(one, node_event::ranks_begin);
    last_ = on_two_nodes_ = vain_ = 0;
    await_all_anew();
}

void copy_rounds::await_all_anew() {
    for (auto& one : nodes_) one.told = 0;
}

/// A node's ranks may have ended before its keeper saw any of them; these would be awaited without end.
bool copy_rounds::awaits_any() {
    auto const is_awaited = [](node const& one) { return one.now == standing::awaited; };
    if (std::none_of(nodes_.begin(), nodes_.end(), is_awaited)) return false;
    if (keeping::holds(keeping::guard::misses_no_ranks,
                       std::none_of(nodes_.begin(), nodes_.end(), [](node const& one) { return one.told >= most_told; })))
        return true;
    for (auto& one : nodes_)
        if (is_awaited(one)) one.ranks_ended = change(one, node_event::no_ranks);
    return false;
}

void copy_rounds::try_begin() {
    if (phase_ != phase::idle || std::count_if(nodes_.begin(), nodes_.end(), [](node const& one) { return one.is_there(); }) < 2)
        return;
    if (awaits_any()) return;
    std::uint64_t least = UINT64_MAX, most = 0;
    for (auto const& one : nodes_) {
        if (!one.is_there() || one.newest == 0) continue;
        least = std::min(least, one.newest);
        most = std::max(most, one.newest);
    }
    if (most == 0 || least <= std::max(last_, vain_)) return;
    auto const from = std::exchange(late_, false) ? least : most + ahead_;
    phase_ = phase::holding;
    ++round_;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        nodes_[i].of = {};
        if (nodes_[i].newest != 0 && change(nodes_[i], node_event::is_asked))
            orders_.push_back({i, order::kind::hold, round_, from});
    }
}

bool copy_rounds::all_done() const {
    return std::all_of(nodes_.begin(), nodes_.end(), [](node const& one) { return one.now != standing::asked; });
}

void copy_rounds::on_held(std::size_t which, std::uint64_t round, std::uint64_t step, share const& of) {
    auto& one = nodes_.at(which);
    if (phase_ != phase::holding || round != round_ || one.now != standing::asked) return;
    if (step == 0) {
        ahead_ = std::clamp<std::uint64_t>(2 * ahead_, 1, farthest_ahead);
        return fail();
    }
    one.held = step;
    one.of = of;
    change(one, node_event::answers);
    if (all_done()) send_if_all_hold();
}

/// Returns whether each rank of one generation has it: otherwise the remaining ranks would lose what the others can go back to.
bool copy_rounds::is_whole() const {
    share all;
    for (auto const& one : nodes_) {
        if (!one.takes_part() || one.of.ranks == 0) continue;
        if (all.ranks > 0 && (all.generation != one.of.generation || all.world_size != one.of.world_size)) return false;
        all = {one.of.generation, all.ranks + one.of.ranks, one.of.world_size};
    }
    return all.ranks == all.world_size;
}

void copy_rounds::send_if_all_hold() {
    std::uint64_t least = UINT64_MAX, most = 0;
    for (auto const& one : nodes_) {
        if (!one.takes_part()) continue;
        least = std::min(least, one.held);
        most = std::max(most, one.held);
    }
    if (least != most) {
        ahead_ = std::clamp<std::uint64_t>(2 * ahead_, 1, farthest_ahead);
        return fail();
    }
    if (keeping::holds(keeping::guard::copies_of_all_ranks, !is_whole(), false)) {
        vain_ = most;
        return fail();
    }
    phase_ = phase::sending;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].takes_part() && change(nodes_[i], node_event::is_asked))
            orders_.push_back({i, order::kind::send, round_, most, next_of(i)});
    }
}

void copy_rounds::on_sent(std::size_t which, std::uint64_t round, bool whole) {
    auto& one = nodes_.at(which);
    if ((phase_ != phase::sending && phase_ != phase::spreading) || round != round_ || one.now != standing::asked) return;
    if (!whole) {
        bool const spread = phase_ == phase::spreading;
        fail();
        if (spread && is_to_spread_again()) spread_last();
        return;
    }
    change(one, node_event::answers);
    if (!all_done()) return;
    for (auto const& each : nodes_)
        if (each.takes_part()) last_ = on_two_nodes_ = each.held;
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

/// The next reports of keepers begin another round: after an order to release they report again what is committed.
void copy_rounds::fail(std::size_t but) {
    phase_ = phase::idle;
    release(keeping::holds(keeping::guard::common_stays_held, true, false) ? last_ : nodes_.front().held, but);
}

/// Sends the order to all nodes except for `but`, which is lost.
void copy_rounds::release(std::uint64_t step, std::size_t but) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        auto& one = nodes_[i];
        if (change(one, node_event::is_released) && one.newest == 0 && !one.ranks_ended && change(one, node_event::ranks_begin))
            await_all_anew();
        if (one.is_there() && i != but) orders_.push_back({i, order::kind::release, round_, step});
    }
}

void copy_rounds::pause() {
    if (is_under_way()) fail();
    phase_ = phase::paused;
    for (auto& one : nodes_) one.newest = 0;
}

void copy_rounds::go_on(std::uint64_t step, std::vector<bool> const& have_ranks, std::vector<bool> const& holders) {
    last_ = step;
    on_two_nodes_ = vain_ = 0;
    await_all_anew();
    have_first_.clear();
    for (std::size_t i = 0; step != 0 && i < holders.size(); ++i)
        if (holders[i]) have_first_.push_back(i);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        change(nodes_[i], have_ranks.at(i) ? node_event::ranks_begin : node_event::no_ranks);
        nodes_[i].ranks_ended = !have_ranks[i];
        nodes_[i].newest = 0;  // meanwhile, only ranks that have gone reported anything
    }
    if (std::any_of(have_first_.begin(), have_first_.end(), [this](std::size_t i) { return !nodes_[i].is_there(); }))
        have_first_.clear();
    phase_ = phase::idle;
    spread_last();
}

/// The next nodes do not have it, or have an older one.
void copy_rounds::spread_last() {
    if (have_first_.empty() || std::count_if(nodes_.begin(), nodes_.end(), [](node const& one) { return one.is_there(); }) < 2)
        return;
    ++round_;
    for (auto const i : have_first_) {
        if (!change(nodes_[i], node_event::is_asked)) continue;
        phase_ = phase::spreading;
        nodes_[i].held = last_;
        orders_.push_back({i, order::kind::send, round_, last_, next_of(i)});
    }
}

/// Nobody reports a later commit, which a round would copy.
bool copy_rounds::is_to_spread_again() const {
    return !have_first_.empty() &&
           std::none_of(nodes_.begin(), nodes_.end(), [this](node const& one) { return one.newest > last_; });
}

/// Returns the next node that is there; the first follows the last.
std::size_t copy_rounds::next_of(std::size_t which) const {
    for (std::size_t i = 1; i < nodes_.size(); ++i)
        if (auto const next = (which + i) % nodes_.size(); nodes_[next].is_there()) return next;
    return which;
}

std::vector<copy_rounds::order> copy_rounds::take_orders() {
    return std::exchange(orders_, {});
}

}  // namespace muster
