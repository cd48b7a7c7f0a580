
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/this_node.hpp"

namespace muster {
namespace {

/// Cores with one hardware thread each, spread evenly over the NUMA nodes.
topology machine(int cores, int numas, std::vector<int> const& gpu_numas = {}) {
    topology t;
    t.host = "box";
    for (int c = 0; c < cores; ++c) t.cores.push_back({cpuset{{c}}, c * numas / cores, 0});
    for (std::size_t g = 0; g < gpu_numas.size(); ++g)
        t.gpus.push_back(
            {static_cast<int>(g), "GPU-" + std::to_string(g), "0000:0" + std::to_string(g) + ":00.0", "A100", gpu_numas[g]});
    return t;
}

std::vector<std::string> cores_of(std::vector<binding> const& bindings) {
    std::vector<std::string> lists;
    for (auto const& b : bindings) lists.push_back(b.cores.to_list());
    return lists;
}

using lists = std::vector<std::string>;

TEST(binding, cores_are_shared_out_evenly) {
    EXPECT_EQ(cores_of(bind_ranks(machine(8, 1), {}, 2)), (lists{"0-3", "4-7"}));
    EXPECT_EQ(cores_of(bind_ranks(machine(8, 1), {}, 8)), (lists{"0", "1", "2", "3", "4", "5", "6", "7"}));
    EXPECT_EQ(cores_of(bind_ranks(machine(8, 1), {}, 1)), (lists{"0-7"}));
    EXPECT_EQ(cores_of(bind_ranks(machine(7, 1), {}, 2)), (lists{"0-2", "3-5"}));
}

TEST(binding, hardware_threads_stay_together) {
    topology t = machine(2, 1);
    t.cores[0].cpus = cpuset{{0, 2}};
    t.cores[1].cpus = cpuset{{1, 3}};
    EXPECT_EQ(cores_of(bind_ranks(t, {}, 2)), (lists{"0,2", "1,3"}));
}

TEST(binding, each_rank_has_its_gpu_and_the_cores_next_to_it) {
    // Polaris' shape: GPU 0 hangs on the last NUMA node.
    auto const b = bind_ranks(machine(32, 4, {3, 2, 1, 0}), {}, 4);
    EXPECT_EQ(cores_of(b), (lists{"24-31", "16-23", "8-15", "0-7"}));
    for (int r = 0; r < 4; ++r) EXPECT_EQ(b[static_cast<std::size_t>(r)].device->index, r);
    EXPECT_EQ(b[0].numa, 3);
    EXPECT_EQ(b[0].why, "8 cores of NUMA 3, next to the GPU");
}

TEST(binding, two_gpus_of_one_numa_node_share_its_cores) {
    EXPECT_EQ(cores_of(bind_ranks(machine(16, 2, {0, 0, 1, 1}), {}, 4)), (lists{"0-3", "4-7", "8-11", "12-15"}));
}

TEST(binding, unknown_locality_falls_back_to_the_whole_node) {
    auto const b = bind_ranks(machine(8, 2, {-1, -1}), {}, 2);
    EXPECT_EQ(cores_of(b), (lists{"0-3", "4-7"}));
}

TEST(binding, never_two_ranks_on_a_core_while_another_is_free) {
    // All GPUs on NUMA 0, which has fewer cores than ranks.
    auto const b = bind_ranks(machine(8, 4, {0, 0, 0, 0}), {}, 4);
    std::set<std::string> distinct;
    for (auto const& list : cores_of(b)) distinct.insert(list);
    EXPECT_EQ(distinct.size(), 4u);
}

TEST(binding, no_core_is_shared_for_any_shape_that_fits) {
    for (int cores = 1; cores <= 12; ++cores)
        for (int numas = 1; numas <= 3; ++numas)
            for (int ranks = 1; ranks <= cores; ++ranks) {
                std::set<int> seen;
                for (auto const& b : bind_ranks(machine(cores, numas), {}, ranks)) {
                    EXPECT_FALSE(b.cores.empty());
                    for (int const cpu : b.cores.cpus)
                        EXPECT_TRUE(seen.insert(cpu).second) << cores << ' ' << numas << ' ' << ranks;
                }
            }
}

TEST(binding, too_many_ranks_are_not_bound_and_say_so) {
    auto const b = bind_ranks(machine(2, 1), {}, 4);
    EXPECT_EQ(cores_of(b), (lists{"", "", "", ""}));
    EXPECT_EQ(b[0].why, "not bound: 4 ranks on 2 cores of the node");
    auto const near_gpus = bind_ranks(machine(2, 2, {0, 1}), {.ranks_per_gpu = 2}, 4);
    EXPECT_EQ(cores_of(near_gpus), (lists{"", "", "", ""}));
    EXPECT_EQ(near_gpus[3].device->index, 1);
}

TEST(binding, too_many_ranks_share_cores_evenly_if_that_was_asked_for) {
    auto const b = bind_ranks(machine(2, 1), {.bind_to = bind_policy::core}, 4);
    EXPECT_EQ(cores_of(b), (lists{"0", "1", "0", "1"}));
    EXPECT_EQ(b[0].why, "shares a core: 4 ranks on 2 cores of the node");
}

TEST(binding, a_rank_without_a_gpu_is_an_error) {
    try {
        bind_ranks(machine(8, 1, {0, 0}), {}, 3);
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::placement);
        EXPECT_STREQ(e.what(), "cannot bind 3 ranks on box: it has 2 GPUs for 1 rank(s) each; use -n 2, or --ranks-per-gpu 2");
    }
    auto const b = bind_ranks(machine(8, 1, {0, 0}), {.ranks_per_gpu = 2}, 4);
    EXPECT_EQ(b[1].device->index, 0);
    EXPECT_EQ(b[2].device->index, 1);
}

TEST(binding, policies) {
    EXPECT_EQ(cores_of(bind_ranks(machine(8, 2), {.bind_to = bind_policy::core}, 2)), (lists{"0", "4"}));
    EXPECT_EQ(cores_of(bind_ranks(machine(8, 2), {.bind_to = bind_policy::numa}, 2)), (lists{"0-3", "4-7"}));
    EXPECT_EQ(cores_of(bind_ranks(machine(8, 2), {.bind_to = bind_policy::none}, 2)), (lists{"", ""}));
    EXPECT_EQ(cores_of(bind_ranks(machine(8, 1), {.cpus_per_rank = 2}, 3)), (lists{"0-1", "2-3", "5-6"}));
    EXPECT_THROW(bind_ranks(machine(8, 1), {.cpus_per_rank = 5}, 2), error);
    EXPECT_THROW(parse_bind_policy("cores"), error);
}

TEST(bind_ranks, a_cpu_quota_gives_each_rank_its_time_and_no_cores) {
    topology machine;
    machine.host = "here";
    for (int i = 0; i < 8; ++i) machine.cores.push_back({cpuset{{i}}, 0, 0});
    machine.cpu_quota = 4;
    EXPECT_EQ(node_of(machine).slots, 4);
    for (auto const& rank : bind_ranks(machine, {}, 2)) {
        EXPECT_TRUE(rank.cores.empty());
        EXPECT_EQ(rank.threads, 2);
        EXPECT_EQ(rank.why, "not bound: a quota allows 4 of 8 CPUs");
    }
    placement_request core;
    core.bind_to = bind_policy::core;
    EXPECT_EQ(bind_ranks(machine, core, 2).front().cores, cpuset{{0}}) << "the user's own word";
}

}  // namespace
}  // namespace muster
