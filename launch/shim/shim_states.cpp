#include "launch/shim/shim_states.hpp"

#include <algorithm>

namespace muster {

std::span<shim_transition const> shim_transitions() noexcept {
    using enum shim_state;
    using enum shim_event;
    using then = shim_effect;
    static constexpr shim_transition rows[]{
        // before there is a program
        {placing, is_placed, waiting, then::none},
        {placing, is_asked_to_end, called_off, then::tell_gone},
        {placing, must_be_killed, called_off, then::tell_gone},
        {placing, is_dismissed, over, then::leave},
        {placing, is_ended_by_daemon, over, then::leave},
        {waiting, is_started, running, then::none},
        {waiting, is_asked_to_end, called_off, then::tell_gone},
        {waiting, must_be_killed, called_off, then::tell_gone},
        {waiting, is_dismissed, over, then::leave},
        {waiting, is_ended_by_daemon, over, then::leave},
        // the program
        {running, job_stops, suspended, then::stop},
        {running, is_asked_to_end, ending, then::end},
        {running, must_be_killed, ending, then::kill},
        {running, is_dismissed, ending, then::end},
        {running, program_ends, leftovers, then::report_end},
        {suspended, job_goes_on, running, then::go_on},
        {suspended, is_asked_to_end, ending, then::end},
        {suspended, must_be_killed, ending, then::kill},
        {suspended, is_dismissed, ending, then::end},
        {suspended, program_ends, leftovers, then::report_end},
        {ending, must_be_killed, ending, then::kill},
        {ending, program_ends, ending_leftovers, then::report_end},
        // what it leaves behind
        {leftovers, is_asked_to_end, ending_leftovers, then::end},
        {leftovers, must_be_killed, ending_leftovers, then::kill},
        {leftovers, is_dismissed, ending_leftovers, then::end},
        {leftovers, is_cleared, draining, then::drain},
        {ending_leftovers, must_be_killed, ending_leftovers, then::kill},
        {ending_leftovers, is_cleared, draining_briefly, then::drain},
        // Here the last output is sent. A reader that does not read holds a rank that ended well, as it would hold any program, but not against
        // a request to end.
        {draining, is_asked_to_end, draining_briefly, then::hurry},
        {draining, must_be_killed, gone, then::conclude},
        {draining, is_dismissed, gone, then::conclude},
        {draining, output_is_sent, gone, then::conclude},
        {draining_briefly, must_be_killed, gone, then::conclude},
        {draining_briefly, is_dismissed, gone, then::conclude},
        {draining_briefly, output_is_sent, gone, then::conclude},
        {draining_briefly, moment_is_over, gone, then::conclude},
        // nothing is left
        {gone, is_dismissed, over, then::leave},
        {called_off, is_dismissed, over, then::leave},
        {called_off, is_ended_by_daemon, over, then::leave},
    };
    return rows;
}

shim_transition const* find_transition(shim_state from, shim_event on) noexcept {
    auto const rows = shim_transitions();
    auto const row = std::ranges::find_if(rows, [&](auto const& each) { return each.from == from && each.on == on; });
    return row == rows.end() ? nullptr : &*row;
}

}  // namespace muster
