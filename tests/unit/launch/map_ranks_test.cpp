#include "launch/placement/placement_request.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

std::string failure(allocation const& a, placement_request const& r) {
    try {
        map_ranks(a, r);
    } catch (error const& e) {
        return e.what();
    }
    return "";
}

allocation job_with_gpus(std::vector<int> const& gpus) {
    allocation a{scheduler_kind::slurm, "4242", {}, std::nullopt, true};
    for (std::size_t i = 0; i < gpus.size(); ++i)
        a.nodes.push_back({"n" + std::to_string(i), "n" + std::to_string(i), 8, gpus[i]});
    return a;
}

TEST(mapping, one_rank_a_gpu_by_default) {
    EXPECT_EQ(map_ranks(local_allocation("h", 64, 4), {}).ranks_per_node, std::vector<int>{4});
    EXPECT_EQ(map_ranks(job_with_gpus({4, 4}), {}).ranks_per_node, (std::vector<int>{4, 4}));
    EXPECT_EQ(map_ranks(job_with_gpus({4, 2}), {}).world_size(), 6);
}

TEST(mapping, one_rank_a_core_without_gpus) {
    EXPECT_EQ(map_ranks(local_allocation("h", 6, 0), {}).ranks_per_node, std::vector<int>{6});
}

TEST(mapping, nodes_fill_in_order) {
    placement_request r;
    r.ranks = 5;
    auto const m = map_ranks(job_with_gpus({4, 4}), r);
    EXPECT_EQ(m.ranks_per_node, (std::vector<int>{4, 1}));
    EXPECT_EQ(m.rank_of(1, 0), 4);
    EXPECT_THROW(m.rank_of(1, 1), error);
}

TEST(mapping, more_ranks_than_gpus_names_numbers_and_ways_out) {
    placement_request r;
    r.ranks = 9;
    EXPECT_EQ(failure(job_with_gpus({4, 4}), r),
              "cannot map 9 ranks: job 4242 (slurm) has 8 GPUs on 2 nodes (4 each); use -n 8, or --ranks-per-gpu 2");
    auto part = job_with_gpus({4});
    part.narrowed_by = "-H";
    EXPECT_EQ(failure(part, r),
              "cannot map 9 ranks: what -H takes of job 4242 (slurm), n0, has 4 GPUs; use -n 4, or leave -H out");
    EXPECT_EQ(failure(local_allocation("box", 64, 1), r),
              "cannot map 9 ranks: node box has 1 GPU; use -n 1, or --ranks-per-gpu 9");
    r.ranks_per_gpu = 2;
    EXPECT_EQ(failure(job_with_gpus({4}), r), "cannot map 9 ranks: job 4242 (slurm) has 4 GPUs; use -n 8, or --ranks-per-gpu 3");
}

TEST(mapping, sharing_gpus_is_opt_in) {
    placement_request r;
    r.ranks_per_gpu = 2;
    EXPECT_EQ(map_ranks(job_with_gpus({4, 4}), r).world_size(), 16);
}

TEST(mapping, oversubscribing_cores_is_said) {
    placement_request r;
    r.ranks = 4;
    auto const m = map_ranks(local_allocation("h", 2, 0), r);
    EXPECT_EQ(m.world_size(), 4);
    EXPECT_EQ(m.note, "4 ranks on 2 cores of h (no GPU): oversubscribed, so timings say little");
    r.ranks = 2;
    EXPECT_EQ(map_ranks(local_allocation("h", 2, 0), r).note, "");
}

TEST(mapping, slots_per_node_is_a_limit) {
    placement_request r;
    r.slots_per_node = 3;
    EXPECT_EQ(map_ranks(local_allocation("h", 2, 0), r).world_size(), 3);
    r.ranks = 4;
    EXPECT_EQ(failure(local_allocation("h", 2, 0), r),
              "cannot map 4 ranks: node h has 3 slots (--slots-per-node); use -n 3, or --slots-per-node 4");
    EXPECT_EQ(map_ranks(local_allocation("h", 2, 1), r = {.ranks = 3, .slots_per_node = 3}).world_size(), 3);
}

TEST(mapping, a_fixed_allocation_is_never_exceeded) {
    placement_request r;
    r.ranks = 17;
    EXPECT_NE(failure(job_with_gpus({0, 0}), r).find("has 16 slots on 2 nodes"), std::string::npos);
}

TEST(mapping, refuses_nonsense) {
    for (int const n : {0, -1}) {
        EXPECT_NE(failure(local_allocation("h", 2, 0), {.ranks = n}), "");
        EXPECT_NE(failure(local_allocation("h", 2, 0), {.slots_per_node = n}), "");
        EXPECT_NE(failure(local_allocation("h", 2, 0), {.ranks_per_gpu = n}), "");
    }
}

allocation unknown_job(std::vector<int> const& slots, std::optional<int> cpus = std::nullopt) {
    allocation a{scheduler_kind::pbs, "7", {}, std::nullopt, true};
    for (std::size_t i = 0; i < slots.size(); ++i) {
        auto const name = "n" + std::to_string(i);
        a.nodes.push_back({name, name, slots[i], std::nullopt, cpus});
    }
    return a;
}

std::vector<int> counts(allocation const& a, placement_request const& r) {
    return map_ranks(a, r).ranks_per_node;
}

TEST(mapping, the_first_nodes_only) {
    EXPECT_EQ(counts(job_with_gpus({4, 4, 4}), {.nodes = 2}), (std::vector{4, 4, 0}));
    EXPECT_EQ(counts(job_with_gpus({4, 4, 4}), {.ranks = 4, .nodes = 2}), (std::vector{2, 2, 0}));
    EXPECT_EQ(counts(job_with_gpus({4, 1, 4}), {.ranks = 6, .nodes = 3}), (std::vector{3, 1, 2}));
    EXPECT_EQ(failure(job_with_gpus({4, 4}), {.nodes = 3}), "cannot use 3 nodes: job 4242 (slurm) has 2; use --nnodes 2");
    EXPECT_EQ(failure(job_with_gpus({4, 4}), {.ranks = 9, .nodes = 2}),
              "cannot map 9 ranks: job 4242 (slurm) has 8 GPUs on 2 nodes (4 each); use -n 8, or --ranks-per-gpu 2");
    EXPECT_EQ(failure(job_with_gpus({4, 4}), {.ranks = 1, .nodes = 2}),
              "-n 1 leaves some of --nnodes 2 without a rank; use --nnodes 1");
}

TEST(mapping, nodes_without_gpus_take_no_rank_where_others_have_some) {
    EXPECT_EQ(counts(job_with_gpus({0, 4, 2}), {}), (std::vector{0, 4, 2}));
    EXPECT_EQ(counts(job_with_gpus({0, 4, 2}), {.nodes = 1}), (std::vector{0, 4, 0}));
    EXPECT_EQ(counts(job_with_gpus({0, 4, 2}), {.ranks_per_node = 2}), (std::vector{0, 2, 2}));
    EXPECT_EQ(failure(job_with_gpus({0, 4, 2}), {.nodes = 3}),
              "cannot use 3 nodes: job 4242 (slurm) has 2 with GPUs; use --nnodes 2");
}

TEST(mapping, by_node_deals_in_rounds) {
    placement_request r{.ranks = 5, .map_by = map_policy::node};
    auto const m = map_ranks(job_with_gpus({4, 4}), r);
    EXPECT_EQ(m.ranks_per_node, (std::vector{3, 2}));
    EXPECT_EQ(m.order, map_policy::node);
    EXPECT_EQ(m.places(), (std::vector<rank_place>{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}}));
    r.ranks = 8;
    EXPECT_EQ(counts(job_with_gpus({1, 4, 4}), r), (std::vector{1, 4, 3}));
    r.ranks.reset();
    EXPECT_EQ(counts(job_with_gpus({1, 4, 4}), r), (std::vector{1, 4, 4}));
}

TEST(mapping, so_many_on_each_node) {
    EXPECT_EQ(counts(job_with_gpus({4, 4}), {.ranks_per_node = 2}), (std::vector{2, 2}));
    EXPECT_EQ(counts(job_with_gpus({4, 4, 4}), {.ranks = 6, .ranks_per_node = 3}), (std::vector{3, 3, 0}));
    EXPECT_EQ(counts(job_with_gpus({4, 4, 4}), {.nodes = 1, .ranks_per_node = 3}), (std::vector{3, 0, 0}));
    EXPECT_EQ(counts(job_with_gpus({4, 4}), {.ranks_per_node = 8, .ranks_per_gpu = 2}), (std::vector{8, 8}));
    EXPECT_EQ(failure(job_with_gpus({4, 2}), {.ranks_per_node = 4}),
              "cannot map 4 ranks on n1: it has 2 GPUs; use --ranks-per-node 2, or --ranks-per-gpu 2");
    EXPECT_EQ(failure(job_with_gpus({0, 0}), {.ranks_per_node = 9}),
              "cannot map 9 ranks on n0: it has 8 slots; use --ranks-per-node 8, or --slots-per-node 9");
    EXPECT_EQ(failure(job_with_gpus({4, 4}), {.ranks = 7, .ranks_per_node = 2}),
              "-n 7 is no multiple of --ranks-per-node 2; use -n 8, or leave one of them out");
    EXPECT_EQ(failure(job_with_gpus({4, 4}), {.ranks = 12, .ranks_per_node = 4}),
              "cannot map 12 ranks with 4 on each node: job 4242 (slurm) has 2 nodes; use -n 8");
    EXPECT_EQ(failure(job_with_gpus({4, 4}), {.ranks = 4, .nodes = 2, .ranks_per_node = 4}),
              "-n 4 is not --nnodes 2 times --ranks-per-node 4; leave one of them out");
}

TEST(mapping, nodes_without_a_rank_are_told_of) {
    EXPECT_EQ(map_ranks(job_with_gpus({4, 4}), {.ranks = 2}).note,
              "2 ranks fit on 1 of the 2 nodes of job 4242 (slurm), and the others have none; --map-by node spreads them");
    EXPECT_EQ(map_ranks(job_with_gpus({4, 4}), {.ranks = 2, .nodes = 1}).note, "");
    EXPECT_EQ(map_ranks(job_with_gpus({4, 4}), {.ranks = 2, .ranks_per_node = 2}).note, "");
    EXPECT_EQ(map_ranks(job_with_gpus({4, 4}), {.ranks = 5}).note, "");
}

TEST(mapping, where_nobody_tells_the_gpus_slots_count_unless_the_user_does) {
    auto const m = map_ranks(unknown_job({1, 1}), {});
    EXPECT_EQ(m.ranks_per_node, (std::vector{1, 1}));
    EXPECT_EQ(
        m.note,
        "job 7 (pbs) does not say how many GPUs its nodes have: one rank for each of its 2 slots; give -n or --ranks-per-node "
        "for another number");
    EXPECT_EQ(counts(unknown_job({1, 1}), {.ranks_per_node = 4}), (std::vector{4, 4}));
    EXPECT_EQ(counts(unknown_job({1, 1}), {.ranks = 7}), (std::vector{4, 3}));
    EXPECT_EQ(counts(unknown_job({4, 4}), {.ranks = 5}), (std::vector{4, 1}));
    EXPECT_EQ(map_ranks(unknown_job({1, 1}), {.ranks = 8}).note, "");
    // Not beyond the hardware threads of a node, where they are known.
    EXPECT_EQ(counts(unknown_job({1, 1}, 4), {.ranks = 8}), (std::vector{4, 4}));
    EXPECT_EQ(failure(unknown_job({1, 1}, 4), {.ranks = 9}),
              "cannot map 9 ranks: job 7 (pbs) has 2 slots on 2 nodes (1 each); use -n 2, or --slots-per-node 5");
    EXPECT_EQ(failure(unknown_job({1, 1}, 4), {.ranks_per_node = 5}),
              "cannot map 5 ranks on n0: it has 4 slots; use --ranks-per-node 4, or --slots-per-node 5");
}

TEST(mapping, slots_that_a_list_of_hosts_states_are_a_limit) {
    allocation a{scheduler_kind::hostfile, "", {{"a", "a", 4, {}, {}, true}, {"b", "b", 4, {}, {}, true}}};
    EXPECT_EQ(counts(a, {}), (std::vector{4, 4}));
    EXPECT_EQ(map_ranks(a, {}).note, "");
    EXPECT_EQ(failure(a, {.ranks = 9}),
              "cannot map 9 ranks: the list of hosts has 8 slots on 2 nodes (4 each); use -n 8, or --slots-per-node 5");
    for (auto& n : a.nodes) n = {n.name, n.name, 1};
    EXPECT_EQ(counts(a, {.ranks = 9}), (std::vector{5, 4}));
}

TEST(mapping, some_nodes_that_tell_and_others_that_do_not_are_an_error) {
    auto job = job_with_gpus({4, 4});
    job.nodes[1].gpus.reset();
    EXPECT_EQ(failure(job, {}),
              "job 4242 (slurm) says that n0 has 4 GPUs, and nothing of n1: ranks cannot be counted; give --slots-per-node N, or "
              "gpus=N for every host of a --hostfile");
    EXPECT_EQ(counts(job, {.slots_per_node = 3}), (std::vector{3, 3}));
}

TEST(mapping, slots_per_node_holds_on_every_node) {
    EXPECT_EQ(counts(job_with_gpus({4, 0}), {.slots_per_node = 6}), (std::vector{6, 6}));
    EXPECT_EQ(failure(job_with_gpus({4, 4}), {.ranks = 13, .slots_per_node = 6}),
              "cannot map 13 ranks: job 4242 (slurm) has 12 slots on 2 nodes (6 each) (--slots-per-node); use -n 12, or "
              "--slots-per-node 7");
}

TEST(mapping, ten_thousand_nodes_of_eight) {
    auto const job = job_with_gpus(std::vector<int>(10'000, 8));
    auto const m = map_ranks(job, {});
    EXPECT_EQ(m.world_size(), 80'000);
    EXPECT_EQ(m.places().back(), (rank_place{9'999, 7}));
    EXPECT_EQ(map_ranks(job, {.ranks = 10'001, .map_by = map_policy::node}).ranks_per_node[0], 2);
}

}  // namespace
}  // namespace muster
