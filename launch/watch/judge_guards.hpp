// The guards of the judge of failures, by name: the simulator inverts them one by one, and has to detect each.
#pragma once

#include <string_view>

namespace muster::judging {

enum class guard {
    holds_who_is_left,               ///< what made a rank end that another has left is awaited
    cause_takes_the_suspects_place,  ///< a rank that ends by itself explains the end that is held
    cause_takes_the_losss_place,     ///< it also explains a loss that the others outlive
    loss_before_followers,           ///< the last ranks that end because of a loss are not to blame
    loss_before_too_few,             ///< and where too few are left, somebody is
    held_before_followers,           ///< where a rank that ended because of another would be blamed, one whose end is held is
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

}  // namespace muster::judging
