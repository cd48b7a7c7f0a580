// The generations of an elastic run: who is in a generation, which lasts until a failure or change, and the choice of the next
// one.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// A place where a member can be.
struct slot {
    std::string host;
    int index = 0;  ///< among the slots of the host
    bool operator==(slot const&) const = default;
};

/// A process of the run. Its number never changes and is never reused.
struct member {
    int number = 0;
    slot at;
    bool has_state = false;  ///< it can give a newcomer the state
    bool operator==(member const&) const = default;
};

struct generation {
    int number = 0;
    std::vector<member> members;  ///< in order of rank
    int born = 0;                 ///< the number of members so far, which is the number of the next one
    bool operator==(generation const&) const = default;
};

/// Says what the next generation should be like.
struct generation_wishes {
    int least = 1;         ///< fewer members cannot go on
    int most = 1;          ///< the run may grow to this number of members
    bool restart = false;  ///< all members start again; otherwise survivors go on in place
};

/// Says what has happened since the present generation began.
struct generation_events {
    std::vector<int> ended = {};               ///< members that have ended; others may have their slots
    std::vector<std::string> lost_hosts = {};  ///< lost with all of their slots
    std::vector<slot> lost_slots = {};
    std::vector<slot> leaving = {};  ///< slots that the run has to give back: their members live
    bool at_commit = false;          ///< the state of all members is saved, so newcomers may join
};

struct generation_choice {
    enum class step {
        keep,    ///< nothing has changed
        change,  ///< `then` begins
        wait,    ///< too few members are left until further slots come
    };
    step next = step::keep;
    generation then = {};
    std::string why = {};  ///< who left and who joined, or what is missing
};

/// Decides from the slots of the run (with spares, in the order in which they are taken), its present generation, the wishes and
/// the events. Pure.
/// - Members that have ended or whose slot is lost leave at once. Free slots take their places before the world shrinks; the run
/// grows only at a commit, or when all start again.
/// - As many members as possible on slots that the run gives back leave in place: enough members must stay, and one of these must
/// have the state.
/// - In place, survivors keep their order and newcomers come last; rank 0 is the first member that has the state. If no survivor
/// has it, the order stays.
/// - On a restart every member is a newcomer, and ranks are numbered host by host, with survivors' slots first.
generation_choice next_generation(std::vector<slot> const& pool, generation const& now, generation_wishes const& wanted,
                                  generation_events const& events);

}  // namespace muster
