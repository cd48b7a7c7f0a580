#include "comm/membership/member_view.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

elastic::generation generation(int number) {
    return {.number = number, .who = {.nspace = "n", .rank = 1, .world_size = 3}, .members = {0, 1, 2}};
}

TEST(member_view, losses_count_for_their_generation_only) {
    member_view view;
    EXPECT_FALSE(take(view, elastic::lost{0, {2}, "early"})) << "it does not know its generation";
    take(view, generation(0));
    EXPECT_FALSE(is_broken(view, 0));
    EXPECT_FALSE(take(view, elastic::lost{1, {2}, "another"}));
    EXPECT_EQ(take(view, elastic::lost{0, {2}, "killed"}), (news_of_world{"killed", {2}}));
    EXPECT_TRUE(is_broken(view, 0));
    take(view, elastic::lost{0, {0}, "killed, too"});
    EXPECT_EQ(view.lost->ranks, (std::vector{2, 0}));
    take(view, generation(1));
    EXPECT_FALSE(is_broken(view, 1));
    EXPECT_TRUE(is_broken(view, 0)) << "it is over";
}

TEST(member_view, a_generation_that_is_over_does_not_come_back) {
    member_view view;
    take(view, generation(2));
    take(view, elastic::lost{2, {0}, "killed"});
    for (int const number : {1, 2}) EXPECT_FALSE(take(view, generation(number)));
    EXPECT_TRUE(is_broken(view, 2));
    for (elastic::message const& word : {elastic::message{elastic::hello{}}, elastic::message{elastic::reform{9}}})
        EXPECT_FALSE(take(view, word)) << "only ranks say so";
}

TEST(member_view, changes_of_hosts_are_heard_once_and_forgotten_with_the_generation) {
    member_view view;
    take(view, generation(0));
    take(view, elastic::hosts_changed{.added = true});
    take(view, elastic::hosts_changed{.removed = true});
    EXPECT_EQ(take_host_changes(view), (elastic::hosts_changed{true, true}));
    EXPECT_EQ(take_host_changes(view), elastic::hosts_changed{});
    take(view, elastic::hosts_changed{.added = true});
    take(view, generation(1));
    EXPECT_EQ(take_host_changes(view), elastic::hosts_changed{});
}

TEST(member_view, one_that_has_left_waits_for_the_next_or_the_end) {
    member_view view;
    take(view, generation(0));
    EXPECT_EQ(state_of_reform(view, 0), reform_state::waits);
    close(view);
    EXPECT_EQ(state_of_reform(view, 0), reform_state::closed);
    take(view, generation(1));
    EXPECT_EQ(state_of_reform(view, 0), reform_state::begun);
}

TEST(member_view, a_communicator_of_some_ranks_hears_of_these) {
    std::vector const members{4, 7};
    EXPECT_EQ(ranks_within(members, {7, 1}), std::vector{1});
    EXPECT_EQ(ranks_within(members, {1}), std::nullopt) << "it goes on";
    EXPECT_EQ(ranks_within({}, {1, 2}), (std::vector{1, 2})) << "the world";
    EXPECT_EQ(ranks_within(members, {}), std::vector<int>{}) << "all are to hear it";
}

}  // namespace
}  // namespace muster
