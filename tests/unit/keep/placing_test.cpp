#include "launch/keep/machines/placing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/remote/host_ranks.hpp"

namespace muster {
namespace {

using testing::ElementsAre;

TEST(placing, a_request_names_the_ranks_of_each_host_and_hosts_that_get_none) {
    auto const asked = ask_to_place({"a", "b", "c"}, {1, 1, 0}, "/s");
    EXPECT_THAT(asked.hosts, ElementsAre("a", "b", "c"));
    EXPECT_EQ(asked.world_size, 3);
    EXPECT_EQ(asked.session_dir, "/s");
    EXPECT_THAT(unpack_ranks(asked.ranks, 3, 3), ElementsAre(ElementsAre(2), ElementsAre(0, 1), ElementsAre()));
}

TEST(placing, a_leader_is_awaited_as_long_as_it_lives_and_says_that_it_does) {
    EXPECT_EQ(judge_leader({.heard_s = 10}, 24, true), leader_state::awaited);
    EXPECT_EQ(judge_leader({.heard_s = 10}, 25, true), leader_state::silent);
    EXPECT_EQ(judge_leader({.heard_s = 10}, 11, false), leader_state::has_ended);
    EXPECT_EQ(judge_leader({.heard_s = 10, .end_s = 20}, 20, true), leader_state::out_of_time);
    EXPECT_EQ(judge_leader({.heard_s = 10, .end_s = 20}, 20, false), leader_state::has_ended);
}

TEST(placing, one_other_leader_is_asked_where_there_is_something_to_lose) {
    EXPECT_FALSE(asks_another_leader(true, 1));
    EXPECT_TRUE(asks_another_leader(false, 1));
    EXPECT_FALSE(asks_another_leader(false, 2));
}

}  // namespace
}  // namespace muster
