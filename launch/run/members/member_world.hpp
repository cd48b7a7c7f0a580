// The world of a run that goes on in place: tells its members who is lost, and begins the next generation with the remaining
// ones.
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

/// Drives the state machine of the membership (launch/elastic/membership.hpp), which makes all decisions: passes events to it and
/// performs its actions. Seats are numbers of ranks at the start. Used from the loop's thread.
class member_world {
  public:
    /// Holds what it needs from the group of ranks.
    struct group {
        /// Passes a message on to the rank (pmix/member_message.hpp).
        std::function<void(int seat, std::string const& packet)> send;
        /// Finds out which of these ranks are stopped now, and calls `then`, at once or within some seconds.
        std::function<void(std::vector<int> const& seats, std::function<void(std::vector<int> const& stopped)> then)> look;
        std::function<void(int seat)> kill;
        std::function<void(std::string const& line)> say;
        /// The generation begins; `seats` is in order of rank.
        std::function<void(generation const& now, std::vector<int> const& seats, std::string const& why)> begin;
        /// Starts a rank that takes the place of the one of that seat; its own seat is the next number. Throws what prevents the
        /// start.
        std::function<void(int seat)> start;
        /// Starts a rank that joins on that slot, and adds it (add_newcomer). Throws what prevents the start.
        std::function<void(slot const& at)> start_at;
        /// The present hosts may be looked at again: the world can take more ranks, or a slot is free.
        std::function<void()> look_at_hosts;
        /// The rank of that seat waits for a place in the world.
        std::function<void(int seat)> waits;
        /// Too few ranks are left.
        std::function<void(std::string const& why)> give_up;
    };
    /// A rank at the start: who it is, and the address at which other nodes reach its node; empty: all ranks are on one node.
    struct place {
        identity who;
        std::string address = {};
    };
    /// All arguments must outlive it. `ranks` is in order of rank; each continues its own member.
    member_world(event_loop& loop, run_context const& run, std::vector<place> ranks, group calls);

    /// Adds a started process that waits for a place in the world; its seat is the next number.
    void add_spare(place what, slot at);
    /// Adds a process on a slot that has come. It is ended if it does not call init() in time.
    void add_newcomer(place what, slot at);
    /// Returns whether the process is still wanted. If not, it was killed because its slot or its place is gone, and its end says
    /// nothing about the slot.
    bool is_wanted(int which) const { return membership::is_wanted(state_, which); }
    /// Sets the newcomer's place when its host's own name is known.
    void place_newcomer(int seat, place const& what);

    /// Returns whether the ranks themselves follow hosts that come and go.
    bool takes_hosts() const { return state_.at != membership::phase::closed && membership::anyone_announced(state_); }
    /// Starts newcomers and makes members leave, as find_host_change() says. They come and go at the others' next commit.
    void take_hosts(host_pool const& hosts);

    /// Takes a message that the rank of that seat has sent.
    void take(int seat, std::string_view packet);

    /// Notes that the rank of that seat has ended: well (with code 0), or lost for the reason `why`. Call it for all ranks that
    /// have ended before you handle any of them. `with_host`: its host is silent, too.
    void note_end(int seat, bool well, std::string const& why, bool with_host = false);
    /// Tells the others which ranks are lost.
    void tell_lost();
    /// Returns whether the remaining ranks can go on without the lost ones. If not, sets why, for a note; the text is empty if a
    /// restart follows anyway.
    bool can_go_on(std::string& why_not) const;
    /// Begins the next generation, if all remaining ranks want it, after all that has happened at this moment is judged.
    void go_on();
    /// Says that no generation follows.
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
    std::deque<membership::event> events_;  ///< events still to be handled
    bool stepping_ = false;                 ///< events of this time are queued
    event_loop::timer look_ = 0;
};

}  // namespace muster
