#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/hierarchical/hierarchical_backend.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(group_by_node, groups_by_nodes_and_by_local_places) {
    // Ranks dealt out in turns, local ranks against the order of the ranks on node 7.
    std::vector<node_place> const places{{3, 0}, {7, 2}, {3, 1}, {7, 1}, {3, 2}, {7, 0}};
    auto const groups = group_by_node(places, 3);
    EXPECT_EQ(groups.refusal, "");
    EXPECT_THAT(groups.local, ElementsAre(5, 3, 1));
    EXPECT_THAT(groups.across, ElementsAre(2, 3));
    EXPECT_EQ(groups.local_place, 1);
    EXPECT_EQ(groups.node_place, 1);
    auto const first = group_by_node(places, 0);
    EXPECT_THAT(first.local, ElementsAre(0, 2, 4));
    EXPECT_THAT(first.across, ElementsAre(0, 5));
    EXPECT_EQ(first.node_place, 0);
}

TEST(group_by_node, refuses_what_has_no_use_or_no_meaning_on_all_ranks_alike) {
    auto const refusal = [](std::vector<node_place> const& places) {
        std::string const of_first = group_by_node(places, 0).refusal;
        for (std::size_t rank = 1; rank < places.size(); ++rank)
            EXPECT_EQ(group_by_node(places, static_cast<int>(rank)).refusal, of_first);
        EXPECT_THAT(group_by_node(places, 0).local, IsEmpty());
        return of_first;
    };
    EXPECT_EQ(refusal({{0, 0}, {0, 1}}), "all ranks are on one node");
    EXPECT_EQ(refusal({{0, 0}, {1, 0}}), "every node has one rank");
    EXPECT_EQ(refusal({{0, 0}, {0, 1}, {1, 0}}), "node 0 has 2 ranks and node 1 has 1; steps need the same number on each");
    EXPECT_EQ(refusal({{0, 0}, {0, 1}, {1, 0}, {1, 0}}), "ranks 2 and 3 both call themselves local rank 0 of node 1");
}

TEST(hierarchical_unavailable, tells_why) {
    identity who;
    who.world_size = 4;
    auto const refusal = [&] { return hierarchical_unavailable(who, {}).value_or(""); };
    if (refusal().starts_with("it needs mpi")) GTEST_SKIP() << refusal();
    EXPECT_EQ(refusal(), "all ranks are on one node");
    who.node_count = 4;
    EXPECT_THAT(refusal(), HasSubstr("one on each"));
    who.node_count = 2;
    EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace muster
