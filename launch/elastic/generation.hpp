// The generations of an elastic run: who is in it from one failure or change to the next, and the choice of the next one.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// A place where a member can be.
struct slot {
    std::string host;
    int index = 0;  ///< among those of the host
    bool operator==(slot const&) const = default;
};

/// A process of the run. Its number never changes and is never used again.
struct member {
    int number = 0;
    slot at;
    bool has_state = false;  ///< it can give the others what a newcomer lacks
    bool operator==(member const&) const = default;
};

struct generation {
    int number = 0;
    std::vector<member> members;  ///< in order of rank
    int born = 0;                 ///< members that the run has had so far: the number of the next one
    bool operator==(generation const&) const = default;
};

/// What is wanted of the next generation.
struct generation_wishes {
    int least = 1;         ///< fewer members cannot go on
    int most = 1;          ///< up to so many come in where the run may grow
    bool restart = false;  ///< all members begin anew; else survivors go on in place
};

/// What has happened since the last one.
struct generation_events {
    std::vector<int> ended = {};               ///< members that are gone; others may have their slots
    std::vector<std::string> lost_hosts = {};  ///< with all of their slots
    std::vector<slot> lost_slots = {};
    std::vector<slot> leaving = {};  ///< that the run is to give back: their members live
    bool at_commit = false;          ///< the state of all members is saved: newcomers may come in
};

struct generation_choice {
    enum class step {
        keep,    ///< nothing has changed
        change,  ///< `then` begins
        wait,    ///< too few are left, until slots come
    };
    step next = step::keep;
    generation then = {};
    std::string why = {};  ///< who left and who came, or what is missing
};

/// Decides, from the slots of the run (spares among them, in the order in which they are taken), its present generation, what is wanted and what
/// has happened. Pure.
/// - Members that have ended or whose slot is lost leave at once. Free slots take their places before the world shrinks; the run
///   grows only at a commit, or where all begin anew.
/// - Members on slots that the run gives back leave in place, as many as can: enough have to be left, and one of those that are left has the state.
/// - In place, survivors keep their order and newcomers come last; rank 0 is the first member that has the state. No survivor has it: the
///   order stays.
/// - On a restart every member is a newcomer, and ranks are numbered host by host, survivors' slots first.
generation_choice next_generation(std::vector<slot> const& pool, generation const& now, generation_wishes const& wanted,
                                  generation_events const& events);

}  // namespace muster
