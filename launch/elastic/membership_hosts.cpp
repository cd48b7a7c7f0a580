// Members follow the hosts that come and go: newcomers start on new hosts, and members leave old ones.
#include <fmt/format.h>

#include <set>

#include "launch/elastic/membership_guards.hpp"
#include "launch/elastic/membership_parts.hpp"

namespace muster::membership {

namespace {

bool holds_slot(std::vector<slot> const& all, slot const& at) {
    return std::find(all.begin(), all.end(), at) != all.end();
}

}  // namespace

void stepper::take(happened::hosts const& what) {
    using enum member_state;
    if (state.at == phase::closed || state.at == phase::gave_up) return;
    std::vector<slot> coming_in, busy;
    for (auto const& one : state.seats) {
        if (one.state == coming || one.state == waiting) coming_in.push_back(one.of.at);
        if (one.state == unneeded || one.state == overdue || one.state == leaving) busy.push_back(one.of.at);
    }
    // `departed` counts members that have ended well, which stay members until the next generation.
    std::vector<member> members;
    for (auto const& one : state.now.members)
        if (state.seats[static_cast<std::size_t>(find_seat(state, one))].state == ended_well)
            busy.push_back(one.at);
        else
            members.push_back(one);
    int const most = is_last_generation(state) ? 0 : state.most - state.departed;
    auto const change_of_hosts = find_host_change(what.there, members, coming_in, busy, most, what.pool_s);
    for (auto& one : state.seats) {
        one.slot_gone = is_member(one.state) && holds_slot(change_of_hosts.leave, one.of.at);
        if (holds_slot(change_of_hosts.end, one.of.at)) change(one, member_event::is_unneeded);
    }
    for (auto const& at : change_of_hosts.start) effects.push_back(act::start_at{at});
    look_to_offer(look_for::offer_when_together);
    auto const leave = change_of_hosts.leave.size();
    bool const stay = leave > 0 && !can_leave(state);
    if (stay && !state.said_stay)
        effects.push_back(
            act::say{fmt::format("note: {} of the slots in use {} gone; the ranks there stay until others are there", leave,
                                 leave == 1 ? "is" : "are")});
    state.said_stay = stay;
}

bool can_leave(world const& state) {
    auto const leaving = count(state, [](seat const& one) { return is_member(one.state) && one.slot_gone; });
    auto const staying = living(state) - leaving;
    auto const come = std::min(room(state), count(state, waits));
    if (leaving == 0 || staying + come == 0 || (staying == 0 && leaving == 1)) return false;
    return staying + come + leaving - 1 >= static_cast<std::size_t>(state.by.least);
}

bool awaits_newcomers(world const& state) {
    return state.by.by_hosts && count(state, [](seat const& one) { return one.state == member_state::coming; }) > 0;
}

/// Looks first at those that wait, so that a stopped one is not offered. Members forget earlier offers at each generation.
void stepper::look_to_offer(look_for when) {
    if (state.at == phase::closed || state.at == phase::gave_up) return;
    std::vector<int> waiting;
    for (auto const& one : state.seats)
        if (waits(one)) waiting.push_back(seat_of(one));
    if (waiting.empty()) return offer_change(when);
    effects.push_back(act::look{when, std::move(waiting)});
}

/// Limits how long processes that can join wait for others that are starting.
void stepper::offer_within_limit() {
    if (state.offers_s) return;
    state.offers_s = now_s + together_within_s;
    effects.push_back(act::set_timer{timer::offer, together_within_s});
}

void stepper::offer_change(look_for when) {
    auto const comes = [](seat const& one) { return waits(one) && !is_stopped(one); };
    bool const has_room = holds(guard::room_for_newcomers, room(state) > 0) && !is_last_generation(state);
    bool const together = holds(guard::newcomers_together, when == look_for::offer_at_once || !awaits_newcomers(state));
    elastic::hosts_changed const word{.added = has_room && together && count(state, comes) > 0, .removed = can_leave(state)};
    if (holds(guard::offers_stopped_later, has_room && count(state, waits) > count(state, comes), false))
        offer_within_limit();  // that process may resume
    if (!word.added && !word.removed) return;
    for (auto const& one : state.seats)
        if (is_member(one.state)) effects.push_back(act::send{seat_of(one), word});
}

/// Does nothing in a run with fixed hosts: newcomers would start on the failed slots at once.
void stepper::cool_failed_slots() {
    if (!state.by.by_hosts) return;
    std::set<std::string> lost_hosts;
    for (auto const& one : state.now.members) {
        auto const how = state.seats[static_cast<std::size_t>(find_seat(state, one))].state;
        if (how == member_state::lost)
            effects.push_back(act::cool_down{one.at, false});
        else if (how == member_state::lost_with_host && lost_hosts.insert(one.at.host).second)
            effects.push_back(act::cool_down{one.at, true});
    }
}

}  // namespace muster::membership
