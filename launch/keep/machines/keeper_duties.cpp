#include "launch/keep/machines/keeper_duties.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "launch/keep/machines/keeping_guards.hpp"
#include "launch/keep/machines/state_arrangement.hpp"

namespace muster {

std::vector<keeper_duties::duty> keeper_duties::take(wire::keep_order const& order) {
    using kind = wire::keep_order::kind;
    switch (order.what) {
        case kind::report: reports_ = true; break;
        case kind::hold:
            holding_ = holding{order.round, order.step, own_.owned_parts()};
            for (int const part : holding_->parts) own_.want(part, order.step);
            look_for_held();
            break;
        case kind::send: send_held(order); break;
        case kind::release: release(order.step); break;
        case kind::list: list(order); break;
        case kind::move: move(order); break;
        case kind::settle: settle(order); break;
        case kind::adopt: break;
    }
    return std::exchange(duties_, {});
}

std::vector<keeper_duties::duty> keeper_duties::look() {
    if (holding_)
        look_for_held();
    else if (reports_)
        look_for_newest();
    return std::exchange(duties_, {});
}

/// Reports the newest step that all ranks here have.
void keeper_duties::look_for_newest() {
    auto const parts = own_.owned_parts();
    if (std::exchange(has_ranks_, !parts.empty()) && parts.empty()) {
        told_newest_ = 0;
        duties_.emplace_back(wire::keep_word{.what = wire::keep_word::kind::no_ranks});
        return;
    }
    std::uint64_t newest = parts.empty() ? 0 : UINT64_MAX;
    for (int const part : parts) {
        std::uint64_t last = 0, number = 0;
        for (auto const& one : own_.copies(part))
            if (one.number > number) number = one.number, last = one.step;
        newest = std::min(newest, last);
    }
    if (newest == told_newest_) return;
    told_newest_ = newest;
    duties_.emplace_back(wire::keep_word{.what = wire::keep_word::kind::newest, .step = newest});
}

/// Answers when each rank holds a commit of the round.
void keeper_duties::look_for_held() {
    wire::keep_word word{.what = wire::keep_word::kind::held, .round = holding_->round};
    for (int const part : holding_->parts) {
        std::optional<copy_shelf::copy> first;
        for (auto const& one : own_.copies(part))
            if (one.held && one.step >= holding_->from && (!first || one.step < first->step)) first = one;
        if (!first) return;
        word.copies.push_back(describe(*first, false));
    }
    auto const step_of = [](wire::kept_copy const& one) { return one.step; };
    auto const [least, most] =
        std::ranges::minmax(word.copies.empty() ? std::vector<wire::kept_copy>(1) : word.copies, {}, step_of);
    if (least.step == most.step) word.step = least.step;
    duties_.emplace_back(std::move(word));
    holding_.reset();
}

void keeper_duties::send_held(wire::keep_order const& order) {
    wire::keep_word done{.what = wire::keep_word::kind::sent, .round = order.round};
    std::vector<item> items;
    for (int const part : own_.parts()) {
        auto const one = own_.find(part, order.step);
        if (one && one->held) {
            items.push_back({*one, false, true});
        } else if (own_.has_owner(part)) {
            done.fault = fmt::format("a rank there has no commit {} that is held", order.step);
            duties_.emplace_back(std::move(done));
            return;
        }
    }
    duties_.emplace_back(send{order.address, order.port, order.key, std::move(items), std::move(done)});
}

/// Drops what another node's rank committed before `step`, since all ranks have that.
void keeper_duties::release(std::uint64_t step) {
    duties_.emplace_back(stop_round{});
    holding_.reset();
    told_newest_ = 0;
    own_.release_all_but(step);
    of_others_.keep_from(step);
}

void keeper_duties::list(wire::keep_order const& order) {
    wire::keep_word word{.what = wire::keep_word::kind::listed, .round = order.round};
    word.copies = list_copies(own_, false);
    auto const more = list_copies(of_others_, true);
    word.copies.insert(word.copies.end(), more.begin(), more.end());
    duties_.emplace_back(std::move(word));
}

void keeper_duties::move(wire::keep_order const& order) {
    wire::keep_word done{.what = wire::keep_word::kind::moved, .round = order.round};
    auto const one = (order.of_neighbour ? of_others_ : own_).find(order.part, order.step, order.generation);
    if (one) {
        duties_.emplace_back(send{order.address, order.port, order.key, {{*one, order.of_neighbour, false}}, std::move(done)});
        return;
    }
    done.fault = "the copy is gone";
    duties_.emplace_back(std::move(done));
}

void keeper_duties::settle(wire::keep_order const& order) {
    duties_.emplace_back(stop_moves{});
    release(order.step);
    // Ranks will make these numbers again: present copies with them belong to another history.
    for (auto* const shelf : {&own_, &of_others_})
        if (keeping::holds(keeping::guard::forgets_other_histories, true, false)) shelf->keep_only(order.generation, order.step);
    own_.drop_others(order.parts);
    has_ranks_ = !own_.owned_parts().empty();  // ranks are about to come, and have not ended
    for (int const part : order.parts)
        if (auto const one = own_.find(part, order.step); one && reports_) own_.hold(*one);
    duties_.emplace_back(wire::keep_word{.what = wire::keep_word::kind::moved, .round = order.round});
}

}  // namespace muster
