// One step of the state machine: what each event does.
#include "launch/elastic/membership.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/units.hpp"
#include "launch/elastic/membership_guards.hpp"
#include "launch/elastic/membership_parts.hpp"

namespace muster::membership {

namespace {

std::string format_seconds(double seconds) {
    return format_duration(duration(seconds));
}

bool asks(seat const& one) {
    return one.state == member_state::asking;
}

/// Returns whether the timer of looks runs.
bool looks_after(world const& state) {
    return state.at == phase::meeting || state.at == phase::broken || state.at == phase::forming;
}

std::vector<int> members_and_waiting(world const& state) {
    std::vector<int> whom;
    for (std::size_t i = 0; i < state.seats.size(); ++i)
        if (is_member(state.seats[i].state) || waits(state.seats[i])) whom.push_back(static_cast<int>(i));
    return whom;
}

}  // namespace

std::vector<effect> step(world& state, event const& what) {
    stepper now{state, what.at_s};
    std::visit([&](auto const& one) { now.take(one); }, what.what);
    return std::move(now.effects);
}

// ------------------------------------------------------------------------------------------------ one member

/// Changes the state by the table; returns false if the table has no such change.
bool stepper::change(seat& one, member_event on) {
    auto const* const row = find_transition(one.state, on);
    if (row == nullptr) return false;
    one.state = row->to;
    act_on(one, row->then);
    return true;
}

void stepper::act_on(seat& one, member_action what) {
    using enum member_action;
    switch (what) {
        case none: break;
        case welcome: this->welcome(one); break;
        case answer:
            one.announced = false;
            one.asked = {};
            this->answer();
            break;
        case tell_generation: this->tell_generation({seat_of(one)}); break;
        case note_announcement: {
            bool const first = !anyone_announced(state);
            one.announced = true;
            if (first) effects.push_back(act::look_at_hosts{});
            end_meeting();
            break;
        }
        case note_wish: this->note_wish(one); break;
        case kill: effects.push_back(act::kill{seat_of(one)}); break;
        case dismiss: this->dismiss(one); break;
        case part:
            this->dismiss(one);
            effects.push_back(act::set_timer{timer::leaver, state.by.grace_s, seat_of(one)});
            break;
        case stop_awaiting: look_to_offer(look_for::offer_when_together); break;
        case note_departure:
            ++state.departed;
            if (holds(guard::answer_after_end, true, false)) this->answer();
            look_to_decide();
            break;
        case note_loss:
            state.free_places.push_back(seat_of(one));
            state.broken.by_loss = state.broken.unjudged = true;
            state.news.ranks.push_back(one.who.rank);
            break;
    }
}

/// Welcomes a process that waits for its first generation, which begins at the others' next commit if one of them is lost
/// already, else at the next loss.
void stepper::welcome(seat const& one) {
    effects.push_back(act::tell_that_it_waits{seat_of(one)});
    effects.push_back(act::look_at_hosts{});  // its slot may have gone
    look_to_offer(look_for::offer_when_together);
    if (awaits_newcomers(state)) offer_within_limit();
}

/// Answers the ranks that ask who they are. Over several nodes, all first have to say where they listen.
void stepper::answer() {
    auto const keeps_waiting = [](seat const& one) { return is_member(one.state) && one.state != member_state::asking; };
    if (holds(guard::all_asked, state.over_nodes && count(state, keeps_waiting) > 0, false)) {
        if (holds(guard::looks_in_init, count(state, asks) > 0, false)) set_going(phase::meeting);
        return;
    }
    std::vector<int> asking;
    for (auto& one : state.seats)
        if (asks(one)) asking.push_back(seat_of(one));
    if (asking.empty()) return;
    for (int const one : asking) change(state.seats[static_cast<std::size_t>(one)], member_event::is_answered);
    end_meeting();
    tell_generation(asking);
    if (holds(guard::tells_again, true, false)) tell_what_is_broken(asking);
    if (holds(guard::offers_again_at_hello, true, false)) look_to_offer(look_for::offer_when_together);
}

void stepper::end_meeting() {
    if (state.at != phase::meeting || count(state, asks) > 0) return;
    effects.push_back(act::cancel_look{});
    state.at = phase::running;
}

/// Tells a rank about breaches before it asked who it is, since it has not heard of them.
void stepper::tell_what_is_broken(std::vector<int> const& whom) {
    if (!state.broken.by_loss && !state.broken.by_failure && state.at != phase::forming) return;
    elastic::lost word{state.now.number, {}, "before this rank came to init(), others left its world"};
    for (std::size_t rank = 0; rank < state.now.members.size(); ++rank)
        if (is_loss(state.seats[static_cast<std::size_t>(find_seat(state, state.now.members[rank]))].state))
            word.ranks.push_back(static_cast<int>(rank));
    for (int const one : whom) effects.push_back(act::send{one, word});
}

void stepper::note_wish(seat& one) {
    if (holds(guard::tells_of_failure, !one.asked.at_commit, false)) tell_of_failure(one.who);
    if (!state.asked_s) state.asked_s = now_s;
    set_going(phase::forming);
    look_to_decide();
}

/// Tells the others that a member has left after a failure, and lives: they may wait for it in vain, too.
void stepper::tell_of_failure(identity const& who) {
    if (std::exchange(state.broken.by_failure, true)) return;
    elastic::lost const word{
        state.now.number, {}, fmt::format("rank {} on {} left its world after a failure", who.rank, who.host)};
    for (auto const& one : state.seats)
        if (is_member(one.state) && one.state != member_state::wanting) effects.push_back(act::send{seat_of(one), word});
}

/// Tells a process that it has no part in the run.
void stepper::dismiss(seat const& one) {
    elastic::generation word{.number = state.now.number};
    for (auto const& each : state.now.members) word.members.push_back(each.number);
    word.who = one.who;
    word.who.rank = -1;
    word.who.local_rank = word.who.node_rank = 0;  // another member has its former places
    word.who.world_size = static_cast<int>(word.members.size());
    effects.push_back(act::send{seat_of(one), std::move(word)});
}

void stepper::tell_generation(std::vector<int> const& whom) {
    if (whom.empty()) return;
    elastic::generation word{.number = state.now.number, .sync = state.sync};
    for (auto const& one : state.now.members) {
        word.members.push_back(one.number);
        auto const& its = state.seats[static_cast<std::size_t>(find_seat(state, one))];
        if (state.over_nodes) word.addresses.push_back(its.address);
        if (word.members.size() > 1 || state.now.number == state.first) continue;
        word.master = its.node_address;
        word.master_port = its.asked.port;
    }
    for (int const one : whom) {
        word.who = state.seats[static_cast<std::size_t>(one)].who;
        effects.push_back(act::send{one, word});
    }
}

// ------------------------------------------------------------------------------------------------ events

void stepper::take(happened::message const& what) {
    auto& from = state.seats.at(static_cast<std::size_t>(what.from));
    if (holds(guard::silent_when_closed, state.at == phase::closed, false)) return;
    if (auto const* const hello = std::get_if<elastic::hello>(&what.what)) {
        from.address = hello->address;
        state.over_nodes =
            state.over_nodes || (!from.address.empty() && state.most <= static_cast<int>(elastic::most_over_nodes));
        change(from, member_event::says_hello);
    } else if (std::holds_alternative<elastic::announce>(what.what)) {
        change(from, member_event::announces);
    } else if (auto const* const asked = std::get_if<elastic::reform>(&what.what)) {
        if (asked->after < state.now.number) {
            change(from, member_event::wants_old);
            return;
        }
        if (holds(guard::word_is_of_present, asked->after > state.now.number, false)) return;
        if (find_transition(from.state, member_event::wants_next) == nullptr) return;
        from.asked = {asked->has_state, asked->at_commit, asked->port};
        change(from, member_event::wants_next);
    }
}

void stepper::take(happened::end const& what) {
    auto& one = state.seats.at(static_cast<std::size_t>(what.whose));
    if (!change(one, what.how) || !is_loss(one.state)) return;
    state.news.why += (state.news.why.empty() ? "" : "; ") + what.why;
}

void stepper::take(happened::losses_known const&) {
    if (state.news.ranks.empty() || !anyone_announced(state))
        return;  // they end and need not report it, unless the judge decides otherwise
    auto news = std::exchange(state.news, {});
    elastic::lost const word{state.now.number, std::move(news.ranks), std::move(news.why)};
    for (auto const& one : state.seats)
        if (holds(guard::tells_losses, is_member(one.state), false)) effects.push_back(act::send{seat_of(one), word});
}

void stepper::take(happened::loss_judged const&) {
    state.broken.unjudged = false;
    std::string why_not;
    if (state.at == phase::closed || state.at == phase::gave_up || !can_go_on(state, why_not)) return;
    take(happened::losses_known{});  // a rank may have announced since
    if (holds(guard::answer_after_end, true, false)) answer();
    if (holds(guard::looks_from_loss_on, state.broken.by_loss, false)) set_going(phase::broken);
    look_to_decide();
}

void stepper::take(happened::look const& what) {
    for (int const number : what.looked_at) {
        auto& one = state.seats.at(static_cast<std::size_t>(number));
        bool const stopped = std::find(what.stopped.begin(), what.stopped.end(), number) != what.stopped.end();
        one.stopped_since_s = !stopped ? -1 : is_stopped(one) ? one.stopped_since_s : now_s;
    }
    if (state.at == phase::closed || state.at == phase::gave_up) return;
    switch (what.what) {
        case look_for::late_members: condemn_late(); [[fallthrough]];  // a member that was stopped may run again
        case look_for::decision: return decide(what.nspace);
        case look_for::offer_when_together:
        case look_for::offer_at_once: return offer_change(what.what);
    }
}

void stepper::take(happened::timer_fired const& what) {
    if (state.at == phase::closed) return;
    if (what.which == timer::look) {
        if (!looks_after(state)) return;
        if (holds(guard::looks_go_on, true, false)) look_later();
        effects.push_back(act::look{look_for::late_members, members_and_waiting(state)});
        return;
    }
    if (what.which == timer::offer) {
        state.offers_s.reset();
        return look_to_offer(look_for::offer_at_once);
    }
    auto& one = state.seats.at(static_cast<std::size_t>(what.seat));
    if (what.which == timer::newcomer && one.state == member_state::coming)
        effects.push_back(act::say{
            fmt::format("note: the rank that was started on {} has not come to init() within {} (--start-timeout): killing it",
                        one.of.at.host, format_seconds(state.by.newcomer_limit_s))});
    change(one, member_event::is_overdue);
}

void stepper::take(happened::addition const& what) {
    if (!state.seats.empty()) state.over_nodes = state.over_nodes || what.who.host != state.seats.front().who.host;
    state.seats.push_back(
        {.who = what.who, .node_address = what.node_address, .of = {-1, what.at}, .state = member_state::coming});
    if (what.in_time)
        effects.push_back(act::set_timer{timer::newcomer, state.by.newcomer_limit_s, static_cast<int>(state.seats.size()) - 1});
}

void stepper::take(happened::placement const& what) {
    auto& one = state.seats.at(static_cast<std::size_t>(what.whose));
    one.who.host = what.host;
    one.node_address = what.node_address;
}

void stepper::take(happened::closing const&) {
    if (state.at == phase::closed) return;
    if (looks_after(state)) effects.push_back(act::cancel_look{});
    state.at = phase::closed;
    for (auto& one : state.seats)
        if (holds(guard::dismisses_at_close, waits(one), false)) change(one, member_event::is_dismissed);
}

// ------------------------------------------------------------------------------------------------ who is stopped, who is late

/// Begins to look for stopped members; never returns to an earlier phase.
void stepper::set_going(phase next) {
    if (next <= state.at) return;
    if (state.at != phase::running) effects.push_back(act::cancel_look{});
    state.at = next;
    look_later();
}

void stepper::look_later() {
    effects.push_back(act::set_timer{timer::look, state.at == phase::forming ? look_every_s : look_around_every_s});
}

/// Kills a member that all others wait for, if it does not come, or if it has asked for the next generation and has been stopped
/// since. It might use what it shares with them when it resumes, so it has to end first.
void stepper::condemn_late() {
    bool const late = state.asked_s && now_s - *state.asked_s > late_after_s;
    for (auto& one : state.seats) {
        if (!is_member(one.state) || one.state == member_state::condemned) continue;
        bool const stopped = is_stopped(one) && holds(guard::stopped_for_two_looks, now_s - one.stopped_since_s >= look_every_s);
        if (!stopped && !(holds(guard::late_after_ask, late) && one.state != member_state::wanting)) continue;
        effects.push_back(act::say{fmt::format(
            "note: rank {} on {} (member {}) {}, and the others go on without it: killing it", one.who.rank, one.who.host,
            one.of.number, stopped ? "is stopped" : fmt::format("has not come for {}", format_seconds(late_after_s)))});
        change(one, member_event::is_condemned);
    }
}

// ------------------------------------------------------------------------------------------------ the next generation

/// Looks at all members once they all want the next generation: a stopped one would keep the others waiting.
void stepper::look_to_decide() {
    if (state.at != phase::forming || living(state) == 0) return;
    auto const missing = [](seat const& one) { return is_member(one.state) && one.state != member_state::wanting; };
    if (holds(guard::all_want, count(state, missing) > 0, false)) return;
    effects.push_back(act::look{look_for::decision, members_and_waiting(state)});
}

void stepper::give_up(std::string why) {
    effects.push_back(act::cancel_look{});
    state.at = phase::gave_up;
    effects.push_back(act::give_up{std::move(why)});
}

void stepper::decide(std::string const& nspace) {
    if (state.at != phase::forming || living(state) == 0) return;
    auto const holds_up = [](seat const& one) {
        if (!is_member(one.state)) return false;
        return holds(guard::all_want, one.state != member_state::wanting, false) ||
               holds(guard::nobody_stopped, is_stopped(one), false);
    };
    if (count(state, holds_up) > 0) return;
    generation_events events;
    events.at_commit = holds(guard::grows_at_commit_only, !state.broken.by_loss && !state.broken.by_failure);
    std::vector<slot> pool;
    for (auto& one : state.now.members) {
        auto const& its = state.seats[static_cast<std::size_t>(find_seat(state, one))];
        one.has_state = holds(guard::state_comes_first, its.asked.has_state, false);
        if (has_ended(its.state))
            events.ended.push_back(one.number);
        else
            (its.slot_gone ? events.leaving : pool).push_back(one.at);
    }
    auto free = room(state);
    for (auto const& one : state.seats)
        if (free > 0 && waits(one) && holds(guard::spare_runs, !is_stopped(one))) pool.push_back(one.of.at), --free;
    generation_wishes const wishes{.least = state.by.least, .most = state.most};
    auto choice = next_generation(pool, state.now, wishes, events);
    bool const is_wait = choice.next == generation_choice::step::wait;
    if (is_wait || is_last_generation(state)) {
        if (holds(guard::waits_for_judgement, state.broken.unjudged, false)) return;  // the judge of the loss ends the run
        return give_up(is_wait ? std::move(choice.why) : no_further_reset(state));
    }
    if (choice.next == generation_choice::step::keep) {
        choice.then = state.now;
        ++choice.then.number;
        auto& members = choice.then.members;  // as next_generation() does when members change
        auto const first = std::find_if(members.begin(), members.end(), [](member const& one) { return one.has_state; });
        if (first != members.end()) std::rotate(members.begin(), first, first + 1);
        choice.why = state.broken.by_failure ? "a collective failed, and no rank is gone" : "no rank is gone";
    }
    begin(std::move(choice.then), choice.why, nspace);
}

namespace {

/// Sets each one's place among the members of its host, in their order.
void seat_on_hosts(std::vector<identity*> const& ranks) {
    std::vector<std::string_view> hosts;
    std::vector<int> counts;
    for (auto* one : ranks) {
        auto const at = static_cast<std::size_t>(std::find(hosts.begin(), hosts.end(), one->host) - hosts.begin());
        if (at == hosts.size()) hosts.push_back(one->host), counts.push_back(0);
        one->node_rank = static_cast<int>(at);
        one->local_rank = counts[at]++;
    }
    for (auto* one : ranks) {
        one->local_size = counts[static_cast<std::size_t>(one->node_rank)];
        one->node_count = static_cast<int>(hosts.size());
    }
}

}  // namespace

void stepper::begin(generation then, std::string const& why, std::string const& nspace) {
    state.asked_s.reset();
    state.at = phase::running;
    effects.push_back(act::cancel_look{});
    cool_failed_slots();
    std::vector<int> seats;
    bool all_at_commit = true;
    for (auto const& one : then.members) {
        int const number = find_seat(state, one);
        auto& its = state.seats[static_cast<std::size_t>(number)];
        if (waits(its)) its.of.number = one.number;
        all_at_commit = all_at_commit && its.asked.at_commit;  // no newcomer is at a commit
        seats.push_back(number);
    }
    state.sync = state.broken.by_loss || holds(guard::sync_unless_at_commit, !all_at_commit, false);
    state.broken = {};  // a loss that is held until its cause is known is of no weight any more
    state.news = {};
    state.now = std::move(then);
    for (auto& one : state.seats)
        if (is_member(one.state) && std::find(seats.begin(), seats.end(), seat_of(one)) == seats.end())
            change(one, member_event::is_left_out);
    std::vector<identity*> ranks;
    for (int const number : seats) {
        auto& one = state.seats[static_cast<std::size_t>(number)];
        one.who.nspace = nspace;
        one.who.rank = static_cast<int>(ranks.size());
        one.who.world_size = static_cast<int>(seats.size());
        one.stopped_since_s = -1;
        if (holds(guard::wishes_end_at_begin, true, false)) change(one, member_event::comes_in);
        ranks.push_back(&one.who);
    }
    seat_on_hosts(ranks);
    tell_generation(seats);
    effects.push_back(act::begin{state.now, seats, why});
    if (holds(guard::offers_again, true, false)) look_to_offer(look_for::offer_when_together);
    if (awaits_newcomers(state)) offer_within_limit();
    replace_lost();
    effects.push_back(act::look_at_hosts{});
}

/// Replaces lost ranks after the others have begun to train again.
void stepper::replace_lost() {
    for (; state.spares > 0 && !state.free_places.empty(); --state.spares) {
        effects.push_back(act::start_in_place_of{state.free_places.front()});
        if (holds(guard::place_is_free_once, true, false)) state.free_places.erase(state.free_places.begin());
    }
}

// ------------------------------------------------------------------------------------------------ what is known of the whole

std::size_t living(world const& state) {
    return count(state, lives_as_member);
}

std::size_t room(world const& state) {
    auto const leaving = count(state, [](seat const& one) { return is_member(one.state) && one.slot_gone; });
    auto const taken = living(state) - leaving + static_cast<std::size_t>(state.departed);
    return static_cast<std::size_t>(state.most) - std::min(taken, static_cast<std::size_t>(state.most));
}

int find_seat(world const& state, member const& one) {
    auto found =
        std::find_if(state.seats.begin(), state.seats.end(), [&](seat const& each) { return each.of.number == one.number; });
    if (found == state.seats.end())
        found = std::find_if(state.seats.begin(), state.seats.end(),
                             [&](seat const& each) { return waits(each) && each.of.at == one.at; });
    return static_cast<int>(found - state.seats.begin());
}

bool anyone_announced(world const& state) {
    return std::any_of(state.seats.begin(), state.seats.end(), [](seat const& one) { return one.announced; });
}

bool is_wanted(world const& state, int which) {
    auto const now = state.seats.at(static_cast<std::size_t>(which)).state;
    return now != member_state::unneeded && now != member_state::gone_unneeded;
}

bool is_last_generation(world const& state) {
    return holds(guard::within_resets, state.by.resets && state.now.number >= *state.by.resets, false);
}

std::string no_further_reset(world const& state) {
    return fmt::format("this was generation {}, the last one that --reset-limit {} allows", state.now.number, *state.by.resets);
}

bool can_go_on(world const& state, std::string& why_not) {
    auto const alive = living(state);
    auto const waiting = count(state, waits);
    auto const left = static_cast<int>(alive + std::min(waiting, room(state)));
    auto const& by = state.by;
    why_not.clear();
    if (!anyone_announced(state)) {
        if (by.says_least && by.restarts == 0)
            why_not = "--min-np: no rank had begun elastic.run, so this failure ends the run; --max-restarts N starts it again";
        return false;
    }
    if (alive == 0 && waiting > 0) why_not = "the others cannot go on in place: spares are left alone, and these have no state";
    if (alive == 0) return false;
    if (is_last_generation(state)) why_not = fmt::format("the others cannot go on in place: {}", no_further_reset(state));
    if (is_last_generation(state)) return false;
    if (left >= by.least) return true;
    bool const asked_for = by.says_least || by.by_hosts;
    if (asked_for || by.warm_spares > 0)  // otherwise nobody asked for going on in place
        why_not = fmt::format("the others cannot go on in place: {} left, {} needed{}", counted(alive, "rank"), by.least,
                              asked_for ? " (--min-np)" : "");
    if (by.restarts > 0 && !by.keeps_state)
        why_not +=
            fmt::format("{}what the ranks have committed is lost (--keep-state node holds it)", why_not.empty() ? "" : "; ");
    return false;
}

}  // namespace muster::membership
