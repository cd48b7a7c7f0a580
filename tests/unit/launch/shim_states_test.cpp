#include "launch/shim/shim_states.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace muster {
namespace {

using enum shim_state;
using enum shim_event;
using then = shim_effect;

/// What happens to a shim, and what it does about each; the state that it is in at the end.
struct course {
    char const* name;
    std::vector<std::pair<shim_event, shim_effect>> steps;
    shim_state end;
};

constexpr auto placed = std::pair{is_placed, then::none};
constexpr auto started = std::pair{is_started, then::none};
constexpr auto told_to_end = std::pair{is_asked_to_end, then::end};
constexpr auto ended = std::pair{program_ends, then::report_end};
constexpr auto cleared = std::pair{is_cleared, then::drain};
constexpr auto sent = std::pair{output_is_sent, then::conclude};
constexpr auto dismissed = std::pair{is_dismissed, then::leave};

std::vector<course> const& courses() {
    static std::vector<course> const all{
        {"a rank that ends well", {placed, started, ended, cleared, sent, dismissed}, over},
        {"asked to end", {placed, started, told_to_end, ended, cleared, sent, dismissed}, over},
        {"asked, and killed as its grace is over",
         {placed, started, told_to_end, {must_be_killed, then::kill}, ended},
         ending_leftovers},
        {"killed at once",
         {placed, started, {must_be_killed, then::kill}, ended, {must_be_killed, then::kill}, cleared},
         draining_briefly},
        {"the launcher is gone",
         {placed, started, {is_dismissed, then::end}, ended, cleared, {is_dismissed, then::conclude}},
         gone},
        {"suspended with its job",
         {placed, started, {job_stops, then::stop}, {job_goes_on, then::go_on}, {job_stops, then::stop}},
         suspended},
        {"ends while suspended", {placed, started, {job_stops, then::stop}, ended}, leftovers},
        {"asked while suspended", {placed, started, {job_stops, then::stop}, told_to_end}, ending},
        {"killed while suspended", {placed, started, {job_stops, then::stop}, {must_be_killed, then::kill}}, ending},
        {"suspended, and the launcher gone", {placed, started, {job_stops, then::stop}, {is_dismissed, then::end}}, ending},
        {"asked to end what it left", {placed, started, ended, told_to_end}, ending_leftovers},
        {"killed with what it left", {placed, started, ended, {must_be_killed, then::kill}}, ending_leftovers},
        {"the launcher is gone before what it left", {placed, started, ended, {is_dismissed, then::end}}, ending_leftovers},
        {"nobody reads",
         {placed, started, ended, cleared, {is_asked_to_end, then::hurry}, {moment_is_over, then::conclude}},
         gone},
        {"nobody reads, and it must go", {placed, started, ended, cleared, {must_be_killed, then::conclude}}, gone},
        {"nobody can read any more", {placed, started, ended, cleared, {is_dismissed, then::conclude}}, gone},
        {"nobody reads in its moment", {placed, started, told_to_end, ended, cleared, {must_be_killed, then::conclude}}, gone},
        {"called off before it was placed", {{is_asked_to_end, then::tell_gone}, dismissed}, over},
        {"killed before it was placed", {{must_be_killed, then::tell_gone}, {is_ended_by_daemon, then::leave}}, over},
        {"called off before it was started", {placed, {is_asked_to_end, then::tell_gone}}, called_off},
        {"killed before it was started", {placed, {must_be_killed, then::tell_gone}}, called_off},
        {"dismissed before it was placed", {dismissed}, over},
        {"dismissed before it was started", {placed, dismissed}, over},
        {"ended by the engine before it was placed", {{is_ended_by_daemon, then::leave}}, over},
        {"ended by the engine before it was started", {placed, {is_ended_by_daemon, then::leave}}, over},
    };
    return all;
}

TEST(shim_states, lead_through_each_course_and_no_row_is_left_out) {
    std::set<shim_transition const*> walked;
    for (auto const& one : courses()) {
        auto state = placing;
        for (auto const& [event, effect] : one.steps) {
            auto const* const row = find_transition(state, event);
            ASSERT_NE(row, nullptr) << one.name << ": event " << static_cast<int>(event) << " in state "
                                    << static_cast<int>(state);
            EXPECT_EQ(row->then, effect) << one.name << ": event " << static_cast<int>(event);
            state = row->to;
            walked.insert(row);
        }
        EXPECT_EQ(state, one.end) << one.name;
    }
    for (auto const& row : shim_transitions())
        EXPECT_TRUE(walked.contains(&row)) << "state " << static_cast<int>(row.from) << ", event " << static_cast<int>(row.on);
}

TEST(shim_states, no_two_rows_say_what_follows_the_same_event) {
    std::set<std::pair<shim_state, shim_event>> seen;
    for (auto const& row : shim_transitions()) EXPECT_TRUE(seen.emplace(row.from, row.on).second);
}

TEST(shim_states, what_comes_late_or_twice_changes_nothing) {
    std::vector<std::pair<shim_state, shim_event>> const refused{
        {waiting, is_placed},                                      // a second job
        {placing, is_started},                                     // a word to start before the rank has a place
        {running, is_started},                                     // … and a second one
        {ending, is_started},          {ending, is_asked_to_end},  // its grace runs
        {ending, is_dismissed},        {ending, job_stops},        // a stopped program would not end
        {leftovers, program_ends},     {running, job_goes_on},        {suspended, job_stops},
        {running, is_cleared},         {running, is_ended_by_daemon},  // the program has had the signal itself
        {running, output_is_sent},                                     // so far
        {draining, moment_is_over},                                    // only a request to end sets a limit
        {gone, is_asked_to_end},       {gone, must_be_killed},        {gone, is_ended_by_daemon},
        {called_off, is_asked_to_end}, {called_off, is_started},
    };
    for (auto const& [state, event] : refused)
        EXPECT_EQ(find_transition(state, event), nullptr) << static_cast<int>(state) << ", " << static_cast<int>(event);
    for (int event = 0; event <= static_cast<int>(moment_is_over); ++event)
        EXPECT_EQ(find_transition(over, static_cast<shim_event>(event)), nullptr) << event;
}

TEST(shim_states, every_state_ends_once_the_rank_is_killed_and_the_launcher_gone) {
    for (int from = 0; from < static_cast<int>(over); ++from) {
        auto state = static_cast<shim_state>(from);
        for (auto const event : {must_be_killed, program_ends, is_cleared, output_is_sent, is_dismissed})
            if (auto const* const row = find_transition(state, event)) state = row->to;
        EXPECT_EQ(state, over) << from;
    }
}

TEST(shim_states, of_a_program_are_those_between_its_start_and_the_word_that_it_is_gone) {
    for (auto const without : {placing, waiting, gone, called_off, over}) EXPECT_FALSE(has_program(without));
    for (auto const with : {running, suspended, ending, leftovers, ending_leftovers, draining, draining_briefly})
        EXPECT_TRUE(has_program(with));
    EXPECT_TRUE(is_running(ending));
    EXPECT_FALSE(is_running(leftovers));
}

}  // namespace
}  // namespace muster
