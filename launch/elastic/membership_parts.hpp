// One step of the membership in progress, and questions about a world: shared by the files of the state machine.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "launch/elastic/membership.hpp"

namespace muster::membership {

/// One step in progress.
struct stepper {
    world& state;
    double now_s;
    std::vector<effect> effects = {};

    void take(happened::message const& what);
    void take(happened::end const& what);
    void take(happened::losses_known const&);
    void take(happened::loss_judged const&);
    void take(happened::look const& what);
    void take(happened::timer_fired const& what);
    void take(happened::hosts const& what);
    void take(happened::addition const& what);
    void take(happened::placement const& what);
    void take(happened::closing const&);

    bool change(seat& one, member_event on);
    void act_on(seat& one, member_action what);
    void welcome(seat const& one);
    void answer();
    void end_meeting();
    void note_wish(seat& one);
    void tell_of_failure(identity const& who);
    void tell_generation(std::vector<int> const& whom);
    void tell_what_is_broken(std::vector<int> const& whom);
    void dismiss(seat const& one);
    void set_going(phase next);
    void look_to_decide();
    void decide(std::string const& nspace);
    void begin(generation then, std::string const& why, std::string const& nspace);
    void cool_failed_slots();
    void replace_lost();
    void condemn_late();
    void look_to_offer(look_for when);
    void offer_within_limit();
    void offer_change(look_for when);
    void look_later();
    void give_up(std::string why);
    int seat_of(seat const& one) const { return static_cast<int>(&one - state.seats.data()); }
};

template <typename What>
std::size_t count(world const& state, What const& what) {
    return static_cast<std::size_t>(std::count_if(state.seats.begin(), state.seats.end(), what));
}

inline bool lives_as_member(seat const& one) {
    return is_member(one.state);
}
inline bool waits(seat const& one) {
    return one.state == member_state::waiting;
}
inline bool is_stopped(seat const& one) {
    return one.stopped_since_s >= 0;
}

std::size_t living(world const& state);
/// Returns the number of places of lost ranks that nobody has.
std::size_t room(world const& state);
/// Returns whether other processes that have been started have not come yet.
bool awaits_newcomers(world const& state);
/// Returns whether enough members would be left, some of which stay: the rule of next_generation().
bool can_leave(world const& state);
bool is_last_generation(world const& state);
std::string no_further_reset(world const& state);
/// Finds a seat by number or, for newcomers, which have no number yet, by slot.
int find_seat(world const& state, member const& one);

}  // namespace muster::membership
