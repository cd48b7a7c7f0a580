// When nodes must be asked before ranks can be mapped.
#include <gtest/gtest.h>

#include "launch/placement/placement_request.hpp"

namespace muster {
namespace {

/// On hosts elsewhere; nothing: nobody knows their GPUs.
allocation job_with(std::vector<std::optional<int>> const& gpus) {
    allocation given;
    given.scheduler = scheduler_kind::pbs;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        auto const name = "elsewhere" + std::to_string(i);
        given.nodes.push_back({name, name, 1, gpus[i], std::nullopt});
    }
    return given;
}

TEST(must_ask_nodes, only_where_nobody_says_how_many_ranks_they_take) {
    EXPECT_TRUE(must_ask_nodes(job_with({std::nullopt, std::nullopt}), {}));
    EXPECT_TRUE(must_ask_nodes(job_with({4, std::nullopt}), {}));
    EXPECT_TRUE(must_ask_nodes(job_with({std::nullopt}), {}));
    EXPECT_FALSE(must_ask_nodes(job_with({4, 0}), {}));
    for (auto const member :
         {&placement_request::ranks, &placement_request::ranks_per_node, &placement_request::slots_per_node}) {
        placement_request wanted;
        wanted.*member = 2;
        EXPECT_FALSE(must_ask_nodes(job_with({std::nullopt, std::nullopt}), wanted));
    }
    placement_request some;
    some.ranks = 2;
    EXPECT_TRUE(must_ask_nodes(job_with({4, std::nullopt}), some));  // they could not even be counted
    auto named = job_with({std::nullopt, std::nullopt});
    for (auto& node : named.nodes) node.slots_named = true;
    EXPECT_FALSE(must_ask_nodes(named, {}));
}

}  // namespace
}  // namespace muster
