#include "launch/mapping.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

std::string failure(allocation const& a, request const& r) {
    try {
        map_ranks(a, r);
    } catch (error const& e) {
        return e.what();
    }
    return "";
}

allocation slurm_job(std::vector<int> const& gpus) {
    allocation a{scheduler_kind::slurm, "4242", {}, std::nullopt, true};
    for (std::size_t i = 0; i < gpus.size(); ++i)
        a.nodes.push_back({"n" + std::to_string(i), "n" + std::to_string(i), 8, gpus[i]});
    return a;
}

TEST(mapping, one_rank_a_gpu_by_default) {
    EXPECT_EQ(map_ranks(local_allocation("h", 64, 4), {}).ranks_per_node, std::vector<int>{4});
    EXPECT_EQ(map_ranks(slurm_job({4, 4}), {}).ranks_per_node, (std::vector<int>{4, 4}));
    EXPECT_EQ(map_ranks(slurm_job({4, 2}), {}).world_size(), 6);
}

TEST(mapping, one_rank_a_core_without_gpus) {
    EXPECT_EQ(map_ranks(local_allocation("h", 6, 0), {}).ranks_per_node, std::vector<int>{6});
}

TEST(mapping, nodes_fill_in_order) {
    request r;
    r.ranks = 5;
    auto const m = map_ranks(slurm_job({4, 4}), r);
    EXPECT_EQ(m.ranks_per_node, (std::vector<int>{4, 1}));
    EXPECT_EQ(m.rank_of(1, 0), 4);
    EXPECT_THROW(m.rank_of(1, 1), error);
}

TEST(mapping, more_ranks_than_gpus_names_numbers_and_ways_out) {
    request r;
    r.ranks = 9;
    EXPECT_EQ(failure(slurm_job({4, 4}), r),
              "cannot map 9 ranks: job 4242 (slurm) has 8 GPUs on 2 nodes; use -n 8, or --ranks-per-gpu 2");
    EXPECT_EQ(failure(local_allocation("box", 64, 1), r),
              "cannot map 9 ranks: node box has 1 GPU; use -n 1, or --ranks-per-gpu 9");
    r.ranks_per_gpu = 2;
    EXPECT_EQ(failure(slurm_job({4}), r), "cannot map 9 ranks: job 4242 (slurm) has 4 GPUs; use -n 8, or --ranks-per-gpu 3");
}

TEST(mapping, sharing_gpus_is_opt_in) {
    request r;
    r.ranks_per_gpu = 2;
    EXPECT_EQ(map_ranks(slurm_job({4, 4}), r).world_size(), 16);
}

TEST(mapping, oversubscribing_cores_is_said) {
    request r;
    r.ranks = 4;
    auto const m = map_ranks(local_allocation("h", 2, 0), r);
    EXPECT_EQ(m.world_size(), 4);
    EXPECT_EQ(m.note, "4 ranks on 2 cores of h (no GPU): oversubscribed, so timings say little");
    r.ranks = 2;
    EXPECT_EQ(map_ranks(local_allocation("h", 2, 0), r).note, "");
}

TEST(mapping, slots_per_node_is_a_limit) {
    request r;
    r.slots_per_node = 3;
    EXPECT_EQ(map_ranks(local_allocation("h", 2, 0), r).world_size(), 3);
    r.ranks = 4;
    EXPECT_EQ(failure(local_allocation("h", 2, 0), r),
              "cannot map 4 ranks: node h has 3 slots (--slots-per-node); use -n 3, or --slots-per-node 4");
    EXPECT_EQ(map_ranks(local_allocation("h", 2, 1), r = {.ranks = 3, .slots_per_node = 3}).world_size(), 3);
}

TEST(mapping, a_fixed_allocation_is_never_exceeded) {
    request r;
    r.ranks = 17;
    EXPECT_NE(failure(slurm_job({0, 0}), r).find("has 16 slots on 2 nodes"), std::string::npos);
}

TEST(mapping, refuses_nonsense) {
    for (int const n : {0, -1}) {
        EXPECT_NE(failure(local_allocation("h", 2, 0), {.ranks = n}), "");
        EXPECT_NE(failure(local_allocation("h", 2, 0), {.slots_per_node = n}), "");
        EXPECT_NE(failure(local_allocation("h", 2, 0), {.ranks_per_gpu = n}), "");
    }
}

TEST(allocations, of_several_nodes_are_noticed) {
    EXPECT_EQ(several_nodes({}), std::nullopt);
    EXPECT_EQ(several_nodes({{"SLURM_JOB_NUM_NODES", "1"}}), std::nullopt);
    EXPECT_EQ(several_nodes({{"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}}),
              "Slurm job 7 has 2 nodes (n[1-2])");
}

}  // namespace
}  // namespace muster
