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

// Plain values and pure functions: no clock, no input or output, nothing by chance. Times are in seconds on a clock that only goes forward.

/// Between two looks at members that others wait for.
inline constexpr double look_every_s = 0.5;
/// … and at others after a loss, as long as nobody waits.
inline constexpr double look_around_every_s = 5;
/// One that runs, and computes on without the others, has so long.
inline constexpr double late_after_s = 540;
/// Those that are ready wait for each other so long: the world is to be made again once.
inline constexpr double together_within_s = 10;

/// Where one process of the run stands. What leads from one state to another is in membership_table.cpp.
enum class member_state {
    // It is no member yet.
    coming,    ///< it was started, and has not come to init()
    waiting,   ///< it waits in init() for a place
    unneeded,  ///< it is killed, since its place is gone
    overdue,   ///< it is killed, since it has not come in time
    // It is a member of the present generation.
    started,    ///< it has not asked who it is
    asking,     ///< it has, and the others have not all done so
    working,    ///< it knows its generation
    wanting,    ///< it wants the next one
    condemned,  ///< it is killed, since the others cannot wait for it; they do until it has ended
    // It is none any more, and lives.
    leaving,
    // It has ended: as a member …
    ended_well,
    lost,
    lost_with_host,
    // … or otherwise.
    gone,
    gone_unneeded,
};
inline constexpr int member_states = static_cast<int>(member_state::gone_unneeded) + 1;

/// What happens to one process.
enum class member_event {
    says_hello,
    announces,
    wants_next,  ///< the generation after the present one
    wants_old,   ///< one that has begun
    is_answered,
    comes_in,     ///< it is in the generation that begins
    is_left_out,  ///< it is not
    is_unneeded,
    is_overdue,
    is_condemned,
    is_dismissed,  ///< the run ends
    ends_well,
    fails,
    is_lost_with_host,
};
inline constexpr int member_events = static_cast<int>(member_event::is_lost_with_host) + 1;

/// What the launcher does then, besides noting the new state.
enum class member_action {
    none,
    welcome,            ///< says that it waits, and offers it to the members
    answer,             ///< once all have asked
    tell_generation,    ///< the present one
    note_announcement,  ///< the program goes on without lost ranks
    note_wish,          ///< the next generation begins when all members want it
    kill,
    dismiss,        ///< tells it that it has no part in the run
    part,           ///< … and kills it after the grace
    stop_awaiting,  ///< others may have waited for it
    note_departure,
    note_loss,
};

/// One row of the table: whatever is not in it changes nothing.
struct transition {
    member_state from;
    member_event on;
    member_state to;
    member_action then;
};

/// The table, in the order of its pages.
std::vector<transition> const& transitions();
transition const* find_transition(member_state from, member_event on);
std::string_view name_of(member_state state);
std::string_view name_of(member_event event);
std::string_view name_of(member_action action);

/// As it said when it asked for the next generation.
struct wish {
    bool has_state = false;
    bool at_commit = false;
    int port = 0;  ///< free on its node
    bool operator==(wish const&) const = default;
};

/// One process of the run, from its start on. Its seat never changes.
struct seat {
    identity who;
    std::string node_address;
    member of;  ///< its number is -1 until it comes in
    std::string address = {};
    member_state state = member_state::started;
    wish asked = {};
    double stopped_since_s = -1;  ///< by the looks at it; below 0: it runs
    bool announced = false;
    bool slot_gone = false;  ///< it is to be given back
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

/// Where the world stands. From the second on it looks after those that others wait for: who is stopped is killed.
enum class phase {
    running,  ///< nobody is missed, and nobody waits
    meeting,  ///< over nodes, members wait until all have told where they listen
    broken,   ///< the others go on without a lost one, and nobody has asked for the next generation yet
    forming,  ///< members wait for the next generation
    gave_up,  ///< too few are left
    closed,   ///< no generation follows
};

/// Losses of the present generation of which the others have not heard.
struct untold {
    std::vector<int> ranks = {};
    std::string why = {};
    bool operator==(untold const&) const = default;
};

/// What has broken the present generation.
struct breach {
    bool by_loss = false;
    bool by_failure = false;  ///< a member has left it after a failure, and the others were told
    bool unjudged = false;    ///< what a loss means is not decided yet
    bool operator==(breach const&) const = default;
};

/// What a look at who is stopped is for.
enum class look_for { decision, late_members, offer_when_together, offer_at_once };

/// What the user asked for.
struct rules {
    int least = 1;
    std::optional<int> resets = std::nullopt;  ///< most generations after the first one
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
    int first = 0;     ///< the number of the generation in which the ranks were started
    int most = 0;      ///< members
    int departed = 0;  ///< of these, nobody takes their places
    int spares = 0;    ///< ranks that may still be started in place of lost ones
    phase at = phase::running;
    breach broken;
    untold news;
    std::vector<int> free_places;    ///< seats of lost members in whose places ranks may be started
    std::optional<double> asked_s;   ///< when the first member wanted the next generation
    std::optional<double> offers_s;  ///< when those that wait are offered at the latest, if that is due
    bool sync = false;               ///< the present generation's word on the state
    bool over_nodes = false;  ///< members tell each other where they listen; on one node, if the first that asks says so
    bool said_stay = false;  ///< that members stay on slots that are gone
};

// ------------------------------------------------------------------------------------------------ events

enum class timer { look, offer, newcomer, leaver };

namespace happened {
/// A rank has sent this.
struct message {
    int from;
    elastic::message what;
};
/// A rank has ended; `how`: ends_well, fails or is_lost_with_host.
struct end {
    int whose;
    member_event how;
    std::string why;
};
/// All that have ended at this moment are noted.
struct losses_known {};
/// The others are to go on without the lost ones.
struct loss_judged {};
/// Somebody has looked: these of those who were to be looked at are stopped. `nspace`: for the generation that may begin now.
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
/// There are these hosts, at this time on the clock of what cools down.
struct hosts {
    host_pool there;
    double pool_s = 0;
};
/// A process has been started that waits for a place; its seat is the next one.
struct addition {
    identity who;
    std::string node_address;
    slot at;
    bool in_time = false;  ///< it is to come to init() within a limit
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
/// `seats` by rank.
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
/// To be answered by happened::look.
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
/// The slot of a lost member, or all of its host, stays idle for a while.
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

/// The only thing that changes a world. What is to be done follows in this order.
std::vector<effect> step(world& state, event const& what);

/// Whether those that are left can go on without the lost ones; else why not, for a note, or an empty text where a restart follows anyway.
bool can_go_on(world const& state, std::string& why_not);
/// Else it was killed, since its slot or its place is gone, and its end says nothing of its slot.
bool is_wanted(world const& state, int which);
bool anyone_announced(world const& state);

}  // namespace muster::membership
