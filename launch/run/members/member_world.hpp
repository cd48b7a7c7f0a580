// The world of a run that goes on in place: tells its members who is lost, and begins the next generation with those that are left.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "pmix/identity.hpp"
#include "pmix/member_message.hpp"

namespace muster {

/// Each rank hears of the others by messages, and says that it wants the next generation. That begins when all that are left do: who is in it says
/// next_generation() alone. Seats are numbers of ranks at the start. Used from the loop's thread.
class member_world {
  public:
    /// What it asks of the group of ranks.
    struct group {
        /// Passes a message on to the rank (pmix/member_message.hpp).
        std::function<void(int seat, std::string const& packet)> send;
        /// Whether the rank is stopped, as far as is known by now; asked again and again.
        std::function<bool(int seat)> is_stopped;
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
    bool is_wanted(int which) const { return !seats_.at(static_cast<std::size_t>(which)).unwanted; }
    /// Where it is, once it is known there by its own name.
    void place_newcomer(int seat, place const& what);

    /// Whether hosts that come and go are taken in and left by the ranks themselves.
    bool takes_hosts() const { return !closed_ && anyone_announced(); }
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

    generation const& now() const noexcept { return now_; }

  private:
    struct seat {
        identity who;
        std::string node_address;
        member of;
        std::string address;  ///< where it listens, as it said
        int port = 0;         ///< free on its node, as it said
        bool asks = false;    ///< who it is, and the others have not all done so
        bool announced = false;
        bool wants = false;      ///< the next generation
        bool at_commit = false;  ///< as it said then
        bool ended = false;
        bool failed = false;     ///< … otherwise than well
        bool with_host = false;  ///< … with its host
        bool stopped = false;    ///< when last looked at
        bool joins = false;      ///< it is no member yet
        bool ready = false;      ///< … and waits to become one
        bool unwanted = false;   ///< … and was killed, as no other is needed
        bool leaves = false;     ///< its slot is to be given back
        bool out = false;        ///< it was a member, has left, and has not ended yet
        bool is_member() const noexcept { return !ended && !joins && !out; }
    };
    seat* find(member const& one);
    seat const* find(member const& one) const;
    bool can_come_in(seat const& one) const;
    std::size_t room() const;
    void replace_lost();
    void welcome(seat& newcomer);
    void offer_soon();
    void offer_change(bool at_once = false);
    bool awaits_newcomers() const;
    bool can_leave() const;
    void part_with(seat& one, generation const& then);
    void dismiss(seat const& one, generation const& then) const;
    std::string no_further_reset() const;
    void cool_failed_slots() const;
    bool is_last_generation() const;
    void take(seat& from, elastic::message const& what);
    void answer(seat& from);
    void after_departure();
    void dismiss_spares() const noexcept;
    void send(seat const& to, elastic::message const& what) const;
    void tell_generation(std::vector<seat*> const& whom) const;
    void tell(identity const& who, std::string_view what);
    void decide();
    void begin(generation then, std::string const& why);
    void look_after_late();
    int seat_of(seat const& one) const;
    bool anyone_announced() const;
    std::size_t living() const;
    int least() const;

    event_loop& loop_;
    run_context const& run_;
    group calls_;
    std::deque<seat> seats_;
    generation now_;
    int first_ = now_.number;  ///< its number as the ranks were started
    bool closed_ = false;
    bool stay_ = false;        ///< members on slots that are gone, and it was said
    int wanted_ = 0;           ///< members
    int departed_ = 0;         ///< of these, nobody takes their places
    int spares_ = 0;           ///< ranks that may still be started in place of lost ones
    std::vector<int> lost_;    ///< seats whose slots are free
    std::vector<int> untold_;  ///< members that are lost, and of which the others do not know
    std::string untold_why_;
    bool anyone_lost_ = false;                            ///< of now_
    bool unjudged_ = false;                               ///< what that means is not decided yet
    bool left_ = false;                                   ///< a member has left now_ after a failure
    bool sync_ = false;                                   ///< the present generation's word on the state
    bool over_nodes_ = false;                             ///< the run has begun on several
    std::optional<event_loop::clock::time_point> asked_;  ///< when the first member wanted the next generation
    event_loop::timer look_ = 0;                          ///< since then
};

}  // namespace muster
