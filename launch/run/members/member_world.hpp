// The world of a run that goes on in place: tells its members who is lost, and begins the next generation with those that are left.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/elastic/membership.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Drives the state machine of the membership (launch/elastic/membership.hpp), which decides everything: hands it what happens, and does what it says. Seats are
/// numbers of ranks at the start. Used from the loop's thread.
class member_world {
  public:
    /// What it asks of the group of ranks.
    struct group {
        /// Passes a message on to the rank (pmix/member_message.hpp).
        std::function<void(int seat, std::string const& packet)> send;
        /// Looks from now on which of these ranks are stopped, and calls `then`, at once or within some seconds.
        std::function<void(std::vector<int> const& seats, std::function<void(std::vector<int> const& stopped)> then)> look;
        std::function<void(int seat)> kill;
        std::function<void(std::string const& line)> say;
        /// The generation begins; `seats` by rank.
        std::function<void(generation const& now, std::vector<int> const& seats, std::string const& why)> begin;
        /// Starts a rank that takes the place of the one of that seat; its own seat is the next one. Throws what keeps it from being started.
        std::function<void(int seat)> start;
        /// Starts a rank that comes in on that slot, and adds it (add_newcomer). Throws what keeps it from being started.
        std::function<void(slot const& at)> start_at;
        /// The hosts that there are may be looked at again: more can be taken in, or a slot is free.
        std::function<void()> look_at_hosts;
        /// The one of that seat waits for a place in the world.
        std::function<void(int seat)> waits;
        /// Too few are left.
        std::function<void(std::string const& why)> give_up;
    };
    /// A rank at the start: who it is, and where other nodes reach its own; empty: all are on one.
    struct place {
        identity who;
        std::string address = {};
    };
    /// All must outlive it. `ranks` in order of rank, where each goes on with its own member.
    member_world(event_loop& loop, run_context const& run, std::vector<place> ranks, group calls);

    /// A process that waits for a place in the world has been started; its seat is the next one.
    void add_spare(place what, slot at);
    /// … on a slot that has come. One that does not come to init() in time is ended.
    void add_newcomer(place what, slot at);
    /// Else it was killed, since its slot or its place is gone, and its end says nothing of its slot.
    bool is_wanted(int which) const { return membership::is_wanted(state_, which); }
    /// Where it is, once it is known there by its own name.
    void place_newcomer(int seat, place const& what);

    /// Whether hosts that come and go are taken in and left by the ranks themselves.
    bool takes_hosts() const { return state_.at != membership::phase::closed && membership::anyone_announced(state_); }
    /// Has newcomers started, and members leave, as find_host_change() says. They come and go at the others' next commit.
    void take_hosts(host_pool const& hosts);

    /// The rank of that seat has sent this.
    void take(int seat, std::string_view packet);

    /// The rank of that seat has ended: well (with code 0), or it is lost for the reason `why`. To be called for all that have ended before anything else is
    /// done about them. `with_host`: nothing is heard of its host.
    void note_end(int seat, bool well, std::string const& why, bool with_host = false);
    /// Tells the others of those that are lost.
    void tell_lost();
    /// Whether those that are left can go on without the lost ones; else why not, for a note, or an empty text where a restart follows anyway.
    bool can_go_on(std::string& why_not) const;
    /// Once all that has happened at this moment is judged: they do, and the next generation begins if all of them want it.
    void go_on();
    /// No generation follows.
    void close() noexcept;

    generation const& now() const noexcept { return state_.now; }

  private:
    membership::event at_present(decltype(membership::event::what) what) const;
    void feed(decltype(membership::event::what) what);
    void step(membership::event const& what);
    membership::rules rules() const;

    void act(membership::act::send const& what);
    void act(membership::act::kill const& what);
    void act(membership::act::say const& what);
    void act(membership::act::begin const& what);
    void act(membership::act::start_in_place_of const& what);
    void act(membership::act::start_at const& what);
    void act(membership::act::look_at_hosts const&);
    void act(membership::act::tell_that_it_waits const& what);
    void act(membership::act::look const& what);
    void act(membership::act::set_timer const& what);
    void act(membership::act::cancel_look const&);
    void act(membership::act::cool_down const& what);
    void act(membership::act::give_up const& what);

    event_loop& loop_;
    run_context const& run_;
    group calls_;
    membership::world state_;
    std::deque<membership::event> events_;  ///< that are still to be handed over
    bool stepping_ = false;                 ///< what happens meanwhile comes behind
    event_loop::timer look_ = 0;
};

}  // namespace muster
