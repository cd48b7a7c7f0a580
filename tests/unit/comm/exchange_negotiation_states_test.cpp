#include "comm/exchange/negotiation/negotiation_states.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace muster::detail {
namespace {

using enum negotiation_state;
using enum negotiation_event;
using then = negotiation_effect;

TEST(negotiation_states, a_cycle_is_a_round_and_what_it_has_brought) {
    struct step {
        negotiation_event what;
        negotiation_state to;
        negotiation_effect does;
    };
    std::vector<std::vector<step>> const cycles{
        {{round_is_due, agreeing, then::agree}, {is_agreed, running, then::plan}, {nothing_is_ready, idle, then::none}},
        {{round_is_due, agreeing, then::agree}, {is_agreed, running, then::plan}, {all_has_run, idle, then::none}},
        {{round_is_due, agreeing, then::agree},
         {some_announce, gathering, then::gather},
         {is_announced, running, then::plan},
         {all_has_run, idle, then::none}},
    };
    for (auto const& cycle : cycles) {
        auto state = idle;
        for (auto const& one : cycle) {
            auto const* const row = find_row<negotiation_rows>(state, one.what);
            ASSERT_NE(row, nullptr) << static_cast<int>(one.what);
            EXPECT_EQ(row->to, one.to);
            EXPECT_EQ(row->then, one.does);
            state = row->to;
        }
        EXPECT_EQ(state, idle);
    }
}

TEST(negotiation_states, nothing_else_changes_it) {
    int changes = 0;
    for (auto const from : {idle, agreeing, gathering, running})
        for (int event = 0; event <= static_cast<int>(all_has_run); ++event) {
            auto const on = static_cast<negotiation_event>(event);
            changes += find_row<negotiation_rows>(from, on) != nullptr ? 1 : 0;
        }
    EXPECT_EQ(changes, 6) << "more than the cycles above";
    EXPECT_EQ(find_row<negotiation_rows>(running, round_is_due), nullptr) << "one round at a time";
    EXPECT_EQ(find_row<negotiation_rows>(idle, is_agreed), nullptr);
    EXPECT_EQ(find_row<negotiation_rows>(agreeing, is_announced), nullptr);
}

TEST(request_pace, follows_those_who_wait_until_this_rank_leaves) {
    auto const after = [](request_pace now, std::vector<pace_event> const& events) {
        for (auto const event : events)
            if (auto const* const row = find_row<pace_rows>(now, event)) now = row->to;
        return now;
    };
    using enum pace_event;
    auto const start = request_pace::gather;
    EXPECT_EQ(after(start, {enters_round}), request_pace::gather);
    EXPECT_EQ(after(start, {is_waited_for, is_waited_for}), request_pace::hurry);
    EXPECT_EQ(after(start, {is_waited_for, enters_round}), request_pace::gather);
    EXPECT_EQ(after(start, {leaves}), request_pace::leave);
    EXPECT_EQ(after(start, {is_waited_for, leaves}), request_pace::leave);
    EXPECT_EQ(after(start, {leaves, is_waited_for, enters_round}), request_pace::leave) << "for good";
}

}  // namespace
}  // namespace muster::detail
