// The states of a rank shim, as a table of what leads from one to another.
#pragma once

#include <span>

namespace muster {

/// The states, in the order in which a rank goes through them.
enum class shim_state {
    placing,           ///< the launcher has not given the job, or it cannot be done here
    waiting,           ///< placed: the program is to start when all ranks are
    running,           ///< the program runs
    suspended,         ///< the program is stopped because the job is
    ending,            ///< the program was asked to end, and has its grace for that
    leftovers,         ///< the program has ended, and what it left behind has a moment to
    ending_leftovers,  ///< the same after a request to end
    draining,          ///< nothing is left but output that the launcher has no room for
    draining_briefly,  ///< the same after a request to end: for a moment only
    gone,              ///< the launcher knows that nothing is left
    called_off,        ///< the same where no program was started
    over,              ///< this process ends
};

enum class shim_event {
    is_placed,           ///< bound, with its ports
    is_started,          ///< the program is
    job_stops,           ///< what started this process was stopped
    job_goes_on,         ///< … and goes on
    is_asked_to_end,     ///< by the launcher, or as nothing is above that could
    must_be_killed,      ///< by the launcher
    is_dismissed,        ///< the launcher needs it no more, or is gone
    is_ended_by_daemon,  ///< by the engine or the scheduler, to whose signal the program itself sees
    program_ends,
    is_cleared,  ///< nothing is left below, or nothing that a signal ends
    output_is_sent,
    moment_is_over,  ///< the one that output may take after a request to end
};

enum class shim_effect { none, tell_gone, leave, stop, go_on, end, kill, report_end, drain, hurry, conclude };

/// Whatever is not in the table changes nothing.
struct shim_transition {
    shim_state from;
    shim_event on;
    shim_state to;
    shim_effect then;
};
std::span<shim_transition const> shim_transitions() noexcept;
/// Null: there is no such row.
shim_transition const* find_transition(shim_state from, shim_event on) noexcept;

/// A program was started, and the launcher does not know it to be gone.
constexpr bool has_program(shim_state one) noexcept {
    return one >= shim_state::running && one < shim_state::gone;
}
constexpr bool is_running(shim_state one) noexcept {
    return one == shim_state::running || one == shim_state::suspended || one == shim_state::ending;
}

}  // namespace muster
