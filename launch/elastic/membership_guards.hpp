// The guards of the machine, by name: the simulator turns them one by one, and has to find each.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::membership {

enum class guard {
    word_is_of_present,     ///< a wish for a generation further on is nobody's
    nobody_stopped,         ///< the next generation does not begin with a stopped member
    all_want,               ///< … nor before all members want it
    spare_runs,             ///< a stopped one does not come in
    all_asked,              ///< over nodes, all tell where they listen before any is answered
    answer_after_end,       ///< one that has ended is not waited for in that
    looks_from_loss_on,     ///< a stopped one is looked for before anybody asks
    looks_in_init,          ///< … nor where others wait for it in init()
    stopped_for_two_looks,  ///< one that is stopped for a moment lives
    late_after_ask,         ///< one that computes for long lives as long as nobody waits for it
    tells_of_failure,       ///< the others hear of a collective that has failed
    tells_losses,
    tells_again,  ///< … also where a rank came to init() later
    waits_for_judgement,
    within_resets,
    sync_unless_at_commit,
    grows_at_commit_only,
    state_comes_first,
    wishes_end_at_begin,
    offers_again,  ///< at each generation, as members forget
    offers_again_at_hello,
    offers_stopped_later,
    room_for_newcomers,
    newcomers_together,
    dismisses_at_close,
    silent_when_closed,
    looks_go_on,
    place_is_free_once,
    count_,
};

std::string_view name_of(guard which);

#ifdef MUSTER_MUTANTS
/// Which row of the table is left out, or which guard is turned, in this thread; -1: none.
extern constinit thread_local int row_left_out;
extern constinit thread_local int guard_turned;
inline bool is_row_left_out(std::ptrdiff_t row) {
    return row == row_left_out;
}
/// The condition, unless this guard is turned off: then what it is without the guard.
inline bool holds(guard which, bool condition, bool without = true) {
    return guard_turned == static_cast<int>(which) ? without : condition;
}
#else
constexpr bool is_row_left_out(std::ptrdiff_t) {
    return false;
}
constexpr bool holds(guard, bool condition, bool = true) {
    return condition;
}
#endif

}  // namespace muster::membership
