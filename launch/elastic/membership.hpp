// The membership of a run that goes on in place, as one state machine: who is a member, who waits, and what the launcher does about each event.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "launch/elastic/generation.hpp"
#include "launch/elastic/host_pool.hpp"
#include "pmix/identity.hpp"
#include "pmix/member_message.hpp"

namespace muster::membership {

// Holds plain values and pure functions: no clock, no input or output, no randomness. Times are in seconds on a clock that only
// goes forward.

/// The time between two looks at members that others wait for.
inline constexpr double look_every_s = 0.5;
/// The time between looks at others after a loss, as long as nobody waits.
inline constexpr double look_around_every_s = 5;
/// A member that runs and computes on without the others has this much time.
inline constexpr double late_after_s = 540;
/// Members that are ready wait this long for each other, so that the world is formed anew only once.
inline constexpr double together_within_s = 10;

/// The state of one process of the run. The transitions are in membership_table.cpp.
enum class member_state {
    // The process is not a member yet:
    coming,    ///< it was started, and has not come to init()
    waiting,   ///< it waits in init() for a place
    unneeded,  ///< it is being killed, because its place is gone
    overdue,   ///< it is being killed, because it has not come in time
    // It is a member of the present generation:
    started,    ///< it has not asked who it is
    asking,     ///< it has asked, and not all others have
    working,    ///< it knows its generation
    wanting,    ///< it wants the next generation
    condemned,  ///< it is being killed, because the others cannot wait for it; they do until it has ended
    // It lives, but is no longer a member:
    leaving,
    // It has ended as a member:
    ended_well,
    lost,
    lost_with_host,
    // It has ended without being a member:
    gone,
    gone_unneeded,
};
inline constexpr int member_states = static_cast<int>(member_state::gone_unneeded) + 1;

/// Names what can happen to one process.
enum class member_event {
    says_hello,
    announces,
    wants_next,  ///< the generation after the present one
    wants_old,   ///< it wants a generation that has begun
    is_answered,
    comes_in,     ///< the generation that begins includes it
    is_left_out,  ///< the generation that begins does not include it
    is_unneeded,
    is_overdue,
    is_condemned,
    is_dismissed,  ///< the run ends
    ends_well,
    fails,
    is_lost_with_host,
};
inline constexpr int member_events = static_cast<int>(member_event::is_lost_with_host) + 1;

/// Names what the launcher does in addition to noting the new state.
enum class member_action {
    none,
    welcome,            ///< says that the process waits, and offers it to the members
    answer,             ///< answers once all have asked
    tell_generation,    ///< sends the present generation
    note_announcement,  ///< the program goes on without lost ranks
    note_wish,          ///< the next generation begins when all members want it
    kill,
    dismiss,        ///< tells the process that it has no part in the run
    part,           ///< tells it so, and kills it after the grace
    stop_awaiting,  ///< offers those that wait, who may have waited for it
    note_departure,
    note_loss,
};

/// One row of the table: an event without a row changes nothing.
struct transition {
    member_state from;
    member_event on;
    member_state to;
    member_action then;
};

/// Returns the table, in the order of the documentation.
std::vector<transition> const& transitions();
transition const* find_transition(member_state from, member_event on);
std::string_view name_of(member_state state);
std::string_view name_of(member_event event);
std::string_view name_of(member_action action);

/// Holds what a rank said when it asked for the next generation.
struct wish {
    bool has_state = false;
    bool at_commit = false;
    int port = 0;  ///< a free port on its node
    bool operator==(wish const&) const = default;
};

/// One process of the run, from its start on. Its seat never changes.
struct seat {
    identity who;
    std::string node_address;
    member of;  ///< its number is -1 until it joins
    std::string address = {};
    member_state state = member_state::started;
    wish asked = {};
    double stopped_since_s = -1;  ///< as the looks found it; below 0: it runs
    bool announced = false;
    bool slot_gone = false;  ///< its slot is to be given back
    bool operator==(seat const&) const = default;
};

inline bool is_member(member_state state) {
    return state >= member_state::started && state <= member_state::condemned;
}
inline bool has_ended(member_state state) {
    return state >= member_state::ended_well;
}
inline bool is_loss(member_state state) {
    return state == member_state::lost || state == member_state::lost_with_host;
}

/// The phase of the world. From the second one on, the launcher looks at members that others wait for, and kills stopped ones.
enum class phase {
    running,  ///< nobody is missing, and nobody waits
    meeting,  ///< over nodes, members wait until all have said where they listen
    broken,   ///< the others go on without a lost one, and nobody has asked for the next generation yet
    forming,  ///< members wait for the next generation
    gave_up,  ///< too few are left
    closed,   ///< no generation follows
};

/// Losses of the present generation that the others do not know yet.
struct untold {
    std::vector<int> ranks = {};
    std::string why = {};
    bool operator==(untold const&) const = default;
};

/// Says what has broken the present generation.
struct breach {
    bool by_loss = false;
    bool by_failure = false;  ///< a member has left it after a failure, and the others know
    bool unjudged = false;    ///< nobody has decided yet what a loss means
    bool operator==(breach const&) const = default;
};

/// The purpose of a look at who is stopped.
enum class look_for { decision, late_members, offer_when_together, offer_at_once };

/// The user's options.
struct rules {
    int least = 1;
    std::optional<int> resets = std::nullopt;  ///< the largest number of generations after the first
    int restarts = 0;
    int warm_spares = 0;
    double newcomer_limit_s = 600;
    double grace_s = 5;
    bool by_hosts = false;    ///< hosts come and go
    bool says_least = false;  ///< --min-np was given
    bool keeps_state = false;
};

struct world {
    rules by;
    std::vector<seat> seats;
    generation now;
    int first = 0;     ///< the number of the generation in which the ranks started
    int most = 0;      ///< members
    int departed = 0;  ///< members whose places nobody takes
    int spares = 0;    ///< ranks that may still start in place of lost ones
    phase at = phase::running;
    breach broken;
    untold news;
    std::vector<int> free_places;    ///< seats of lost members in whose places ranks may be started
    std::optional<double> asked_s;   ///< when the first member wanted the next generation
    std::optional<double> offers_s;  ///< the latest time to offer those that wait, if an offer is due
    bool sync = false;               ///< the present generation has to synchronise the state
    bool over_nodes = false;  ///< members tell each other where they listen; on one node, only if the first that asks does
    bool said_stay = false;  ///< the note that members stay on lost slots was printed
};

// ------------------------------------------------------------------------------------------------ events

enum class timer { look, offer, newcomer, leaver };

namespace happened {
/// A rank has sent this.
struct message {
    int from;
    elastic::message what;
};
/// A rank has ended; `how` is ends_well, fails or is_lost_with_host.
struct end {
    int whose;
    member_event how;
    std::string why;
};
/// All ends of this moment have been noted.
struct losses_known {};
/// The others may go on without the lost ones.
struct loss_judged {};
/// Processes were looked at: `stopped` are the stopped ones of `looked_at`. `nspace` is for the generation that may begin now.
struct look {
    look_for what;
    std::vector<int> looked_at;
    std::vector<int> stopped;
    std::string nspace;
};
struct timer_fired {
    timer which;
    int seat = -1;
};
/// These hosts are present, at this time on the clock of cool-downs.
struct hosts {
    host_pool there;
    double pool_s = 0;
};
/// A process has started that waits for a place; its seat is the next number.
struct addition {
    identity who;
    std::string node_address;
    slot at;
    bool in_time = false;  ///< it has to come to init() within a limit
};
struct placement {
    int whose;
    std::string host;
    std::string node_address;
};
struct closing {};
}  // namespace happened

struct event {
    double at_s;
    std::variant<happened::message, happened::end, happened::losses_known, happened::loss_judged, happened::look,
                 happened::timer_fired, happened::hosts, happened::addition, happened::placement, happened::closing>
        what;
};

// ------------------------------------------------------------------------------------------------ effects

namespace act {
struct send {
    int to;
    elastic::message what;
};
struct kill {
    int whom;
};
struct say {
    std::string line;
};
/// `seats` is in order of rank.
struct begin {
    generation now;
    std::vector<int> seats;
    std::string why;
};
struct start_in_place_of {
    int seat;
};
struct start_at {
    slot at;
};
struct look_at_hosts {};
struct tell_that_it_waits {
    int seat;
};
/// The answer is happened::look.
struct look {
    look_for what;
    std::vector<int> at;
};
struct set_timer {
    timer which;
    double after_s;
    int seat = -1;
};
struct cancel_look {};
/// Keeps the slot of a lost member, or all of its host, idle for a while.
struct cool_down {
    slot at;
    bool whole_host;
};
struct give_up {
    std::string why;
};
}  // namespace act

using effect = std::variant<act::send, act::kill, act::say, act::begin, act::start_in_place_of, act::start_at, act::look_at_hosts,
                            act::tell_that_it_waits, act::look, act::set_timer, act::cancel_look, act::cool_down, act::give_up>;

/// Changes the world; nothing else does. Returns what to do, in this order.
std::vector<effect> step(world& state, event const& what);

/// Returns whether the remaining members can go on without the lost ones. If not, sets why, for a note; the text is empty if a
/// restart follows anyway.
bool can_go_on(world const& state, std::string& why_not);
/// Returns false for a process that was killed because its slot or its place is gone; its end then says nothing about its slot.
bool is_wanted(world const& state, int which);
bool anyone_announced(world const& state);

}  // namespace muster::membership
