#include "base/cpuset.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

TEST(cpusets, lists_both_ways) {
    for (auto const* list : {"", "0", "0-3,8", "1,3,5-6", "65535"}) EXPECT_EQ(cpuset::from_list(list).to_list(), list);
    EXPECT_EQ(cpuset::from_list("3,1,2,2-4").to_list(), "1-4");
    EXPECT_EQ(cpuset::from_list(" 0 - 2 , 5 ").to_list(), "0-2,5");
}

TEST(cpusets, refuse_what_is_no_list) {
    for (auto const* list : {"a", "1-", "-1", "3-1", "1,,2", "0x3", "99999999999", "1-70000", "1--2"})
        EXPECT_THROW(cpuset::from_list(list), parse_error) << list;
}

TEST(cpusets, are_sets) {
    auto a = cpuset::from_list("0-3");
    EXPECT_EQ(intersect(a, cpuset::from_list("2-9")).to_list(), "2-3");
    a.add(cpuset::from_list("2,8"));
    EXPECT_EQ(a.to_list(), "0-3,8");
    EXPECT_TRUE(a.contains(8));
    EXPECT_FALSE(a.contains(4));
    EXPECT_FALSE(current_affinity().empty());
}

}  // namespace
}  // namespace muster
