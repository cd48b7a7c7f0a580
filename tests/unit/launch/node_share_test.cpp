#include "launch/placement/this_node.hpp"

#include <gmock/gmock.h>

#include "launch/placement/bind_ranks.hpp"
#include "tests/unit/launch/machine_files.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

allocation pbs_job_of(int gpus, int cpus, bool shares) {
    allocation given{scheduler_kind::pbs, "7", {{"n1", "n1", 2, gpus, cpus}}, std::nullopt, true};
    given.shares_nodes = shares;
    return given;
}

placement_request part(int gpus, int cpus, bool shares) {
    auto const given = pbs_job_of(gpus, cpus, shares);
    return with_share({}, given, given.nodes[0]);
}

TEST(node_shares, nothing_is_bound_that_may_be_anothers) {
    auto const machine = machine_of("polaris");
    auto const wanted = part(2, 4, true);
    auto const ranks = bind_ranks(machine, wanted, 2);
    EXPECT_FALSE(ranks[0].device.has_value());
    EXPECT_TRUE(ranks[0].cores.empty());
    EXPECT_THAT(share_note(machine, wanted), HasSubstr("2 of the 4 GPUs and 4 of the 64 hardware threads"));
}

TEST(node_shares, GPUs_that_the_scheduler_numbers_take_the_place_of_inherited_ones) {
    allocation const given{
        scheduler_kind::flux, "f7", {{"n1", "n1", 2, 2, 2, false, false, "1,3"}, {"n2", "n2", 2, 0, 2}}, {}, true};
    environment const brought{{"CUDA_VISIBLE_DEVICES", "0"}, {"HIP_VISIBLE_DEVICES", "0"}, {"KEPT", "1"}};
    EXPECT_EQ(with_given_gpus(brought, with_share({}, given, given.nodes[0]).share),
              (environment{
                  {"CUDA_VISIBLE_DEVICES", "1,3"}, {"ROCR_VISIBLE_DEVICES", "1,3"}, {"ZE_AFFINITY_MASK", "1,3"}, {"KEPT", "1"}}));
    EXPECT_EQ(with_given_gpus(brought, with_share({}, given, given.nodes[1]).share), brought);
}

TEST(node_shares, a_whole_node_is_bound_as_ever) {
    auto const machine = machine_of("polaris");
    for (auto const& wanted : {part(2, 4, false), part(4, 64, true)}) {
        EXPECT_EQ(share_note(machine, wanted), "");
        EXPECT_EQ(bind_ranks(machine, wanted, 2), bind_ranks(machine, {}, 2));
    }
    auto const gpus_only = bind_ranks(machine, part(4, 8, true), 2);
    EXPECT_TRUE(gpus_only[0].device.has_value());
    EXPECT_TRUE(gpus_only[0].cores.empty());
}

TEST(node_shares, cores_may_be_anothers_where_the_gpus_were_counted_on_the_node) {
    auto given = pbs_job_of(4, 4, true);
    given.nodes[0].gpus_counted = true;
    auto const machine = machine_of("polaris");
    auto const wanted = with_share({}, given, given.nodes[0]);
    EXPECT_TRUE(bind_ranks(machine, wanted, 2)[0].cores.empty());
    EXPECT_THAT(share_note(machine, wanted), HasSubstr("the job has 4 of the 64 hardware threads"));
}

TEST(node_shares, a_map_is_the_users_word) {
    auto wanted = part(2, 4, true);
    wanted.gpu_map = {2, 3};
    EXPECT_TRUE(bind_ranks(machine_of("polaris"), wanted, 2)[0].device.has_value());
}

TEST(node_shares, gpus_of_the_job_that_nobody_sees_are_told) {
    auto machine = machine_of("polaris");
    machine.gpus.clear();
    EXPECT_THAT(share_note(machine, part(4, 64, false)), HasSubstr("the job has 4 GPUs there, and none is to be seen"));
    EXPECT_EQ(share_note(machine, part(0, 64, false)), "");
    auto given = pbs_job_of(4, 64, false);  // as a site's file says of its nodes
    given.nodes[0].gpus_counted = true;
    EXPECT_THAT(share_note(machine, with_share({}, given, given.nodes[0])),
                HasSubstr("the job has 4 GPUs there, and none is to be seen"));
}

}  // namespace
}  // namespace muster
