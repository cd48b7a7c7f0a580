// The guards of the leader of keepers and of the rounds, by name: the simulator inverts them one by one, and has to detect each.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::keeping {

enum class guard {
    misses_the_silent,    ///< a keeper that stands still is lost
    another_takes_over,   ///< it gets the memory of the previous one
    keeps_the_left_out,   ///< what ranks without successors have committed stays until something newer exists
    copies_of_all_ranks,  ///< a round in which a rank has ended does not count
    releases_at_coming,   ///< what the previous keeper held is released
    spreads_the_first,    ///< the commit with which all begin goes to the next nodes at once
    common_stays_held,    ///< after a failed round its commit is dropped, and the last whole one stays
    neighbours_copies_count,
    moves_what_is_elsewhere,
    tries_to_move_again,
    forgets_other_histories,
    listens_from_awakening,  ///< a leader that was stopped itself has not listened
    says_that_it_is_at_it,
    keeps_the_newest,  ///< a copy that comes does not take the place of the one before it
    misses_no_ranks,   ///< ranks that ended before they opened their memory are not awaited
    count_,
};

std::string_view name_of(guard which);

#ifdef MUSTER_MUTANTS
/// The guard that is inverted, in this thread; -1: none.
extern constinit thread_local int guard_turned;
/// Returns the condition or, if this guard is turned off, what holds without the guard.
inline bool holds(guard which, bool condition, bool without = true) {
    return guard_turned == static_cast<int>(which) ? without : condition;
}
#else
constexpr bool holds(guard, bool condition, bool = true) {
    return condition;
}
#endif

}  // namespace muster::keeping
