// The guards of the state machine, by name: the simulator inverts them one by one, and has to detect each.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::membership {

enum class guard {
    word_is_of_present,     ///< a wish for a later generation than the next is ignored
    nobody_stopped,         ///< the next generation does not begin with a stopped member
    all_want,               ///< the next generation does not begin before all members want it
    spare_runs,             ///< a stopped spare does not join
    all_asked,              ///< over nodes, all say where they listen before any is answered
    answer_after_end,       ///< the answers do not wait for a rank that has ended
    looks_from_loss_on,     ///< after a loss, the launcher looks for stopped members before anybody asks
    looks_in_init,          ///< it also does so while others wait in init()
    stopped_for_two_looks,  ///< a member that is stopped for a moment lives
    late_after_ask,         ///< a member that computes for long lives as long as nobody waits for it
    tells_of_failure,       ///< the others learn of a collective that has failed
    tells_losses,
    tells_again,  ///< a rank that comes to init() later learns it, too
    waits_for_judgement,
    within_resets,
    sync_unless_at_commit,
    grows_at_commit_only,
    state_comes_first,
    wishes_end_at_begin,
    offers_again,  ///< at each generation, because members forget
    offers_again_at_hello,
    offers_stopped_later,
    room_for_newcomers,
    newcomers_together,
    dismisses_at_close,
    silent_when_closed,
    looks_go_on,
    place_is_free_once,
    faults_change_no_hosts,  ///< nor does a script of hosts that fails
    tells_of_scripts_end,
    count_,
};

std::string_view name_of(guard which);

#ifdef MUSTER_MUTANTS
/// The row of the table that is left out, or the guard that is inverted, in this thread; -1: none.
extern constinit thread_local int row_left_out;
extern constinit thread_local int guard_turned;
inline bool is_row_left_out(std::ptrdiff_t row) {
    return row == row_left_out;
}
/// Returns the condition or, if this guard is turned off, what holds without the guard.
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
