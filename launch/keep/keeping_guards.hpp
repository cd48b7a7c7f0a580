// The guards of the leader of keepers and of the rounds, by name: the simulator turns them one by one, and has to find each.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::keeping {

enum class guard {
    misses_the_silent,    ///< a keeper that stands still is lost
    another_takes_over,   ///< it gets the memory of the one before it
    keeps_the_left_out,   ///< what ranks without successors have committed, until there is something newer
    copies_of_all_ranks,  ///< a round in which a rank has ended does not count
    releases_at_coming,   ///< what the keeper before it held
    spreads_the_first,    ///< the commit with which all begin goes to the next nodes at once
    common_stays_held,    ///< what a round that fails has made is not kept, the last whole commit is
    neighbours_copies_count,
    moves_what_is_elsewhere,
    tries_to_move_again,
    forgets_other_histories,
    listens_from_awakening,  ///< who was stopped itself has not listened
    says_that_it_is_at_it,
    count_,
};

std::string_view name_of(guard which);

#ifdef MUSTER_MUTANTS
/// Which guard is turned, in this thread; -1: none.
extern constinit thread_local int guard_turned;
/// The condition, unless this guard is turned off: then what it is without the guard.
inline bool holds(guard which, bool condition, bool without = true) {
    return guard_turned == static_cast<int>(which) ? without : condition;
}
#else
constexpr bool holds(guard, bool condition, bool = true) {
    return condition;
}
#endif

}  // namespace muster::keeping
