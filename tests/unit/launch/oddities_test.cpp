// What is odd in samples: each kind by its threshold, and nothing in healthy runs whose ranks differ a little.
#include "launch/samples/remarks/oddities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t gib = 1ull << 30;

/// 8 ranks on two nodes, a GPU each, that wait for each other a third of the time. `jitter` makes them differ as real ones do.
run_samples make_healthy(unsigned jitter = 0) {
    std::mt19937 numbers(jitter);
    auto const about = [&](double value, double by) {
        return jitter == 0 ? value : value + std::uniform_real_distribution<double>(-by, by)(numbers);
    };
    run_samples run;
    run.world_size = 8;
    for (int n = 0; n < 2; ++n) {
        node_sample node;
        node.host = n == 0 ? "a" : "b";
        node.steal = about(0.01, 0.01);
        for (int g = 0; g < 4; ++g) {
            gpu_sample gpu;
            gpu.number = std::to_string(g);
            gpu.busy_percent = static_cast<int>(about(85, 15));
            gpu.clock_mhz = static_cast<int>(about(1900, 60));
            gpu.most_clock_mhz = 1980;
            gpu.ecc_errors = 0;
            gpu.remapped_rows = 2;
            node.gpus.push_back(gpu);
            rank_sample rank;
            rank.rank = 4 * n + g;
            rank.gpu = gpu.number;
            rank.state = "RSD"[numbers() % 3];
            rank.age_s = 1000;
            rank.cores = about(1.1, 0.2);
            rank.core_wait = about(0.3, 0.05);
            rank.data_wait = about(0.3, 0.05);
            rank.allowed_cores = 8;
            rank.silent_s = rank.rank == 0 ? 0.2 : about(400, 300);
            rank.faults_per_s = about(2, 2);
            rank.cgroup = {about(1, 1),     0.01, about(0.02, 0.02), 380 * gib, 480 * gib, about(0.1, 0.1), about(0.02, 0.02),
                           about(0.2, 0.15)};
            rank.waits = wait_sample{1000, 300, about(0.3, 0.04), 100, 125, {}};
            node.ranks.push_back(rank);
        }
        run.nodes.push_back(std::move(node));
    }
    return run;
}

struct odd_case {
    char const* name;
    oddity_kind kind;
    std::function<void(node_sample&, rank_sample&, gpu_sample&)> change;
    char const* reason;
};

/// Rank 5 is changed.
std::vector<oddity> found_after(std::function<void(node_sample&, rank_sample&, gpu_sample&)> const& change) {
    auto run = make_healthy();
    for (auto& node : run.nodes)
        for (auto& rank : node.ranks) rank.state = 'S';
    change(run.nodes[1], run.nodes[1].ranks[1], run.nodes[1].gpus[1]);
    return find_oddities(run);
}

TEST(oddities, are_found_alone_and_explained) {
    odd_case const cases[]{
        {"stopped", oddity_kind::stopped, [](auto&, auto& r, auto&) { r.state = 'T'; }, "it is stopped, by a signal"},
        {"traced", oddity_kind::stopped, [](auto&, auto& r, auto&) { r.state = 't'; }, "it is stopped, by a debugger"},
        {"blocked", oddity_kind::blocked,
         [](auto&, auto& r, auto&) { r.state = 'D', r.blocked_s = 4, r.cores = 0.01, r.where = "nfs_wait"; },
         "it has been blocked in the kernel for 4 s (state D, in nfs_wait)"},
        {"throttled", oddity_kind::throttled, [](auto&, auto& r, auto&) { r.cgroup.throttled = 0.62; },
         "its cgroup's quota held it back 62 % of the time"},
        {"shares its cores", oddity_kind::shares_cores, [](auto&, auto& r, auto&) { r.core_wait = 0.61; },
         "it waits for a core 61 % of the time, which it shares"},
        {"swaps", oddity_kind::swapping, [](auto&, auto& r, auto&) { r.faults_per_s = 812; },
         "812 of its pages a second come from swap or a disk"},
        {"memory", oddity_kind::memory_limit, [](auto&, auto& r, auto&) { r.cgroup.memory_bytes = 470 * gib; },
         "its cgroup uses 470 GiB of 480 GiB of memory"},
        {"waits for data", oddity_kind::data_wait, [](auto&, auto& r, auto&) { r.data_wait = 0.61; },
         "it waits for data 61 % of the time"},
        {"waits for memory", oddity_kind::memory_pressure, [](auto&, auto& r, auto&) { r.cgroup.memory_pressure = 0.25; },
         "its cgroup waits for memory 25 % of the time"},
        {"waits for a disk", oddity_kind::io_pressure, [](auto&, auto& r, auto&) { r.cgroup.io_pressure = 0.7; },
         "its cgroup waits for disks or file systems 70 % of the time"},
        {"heat", oddity_kind::gpu_slowed, [](auto&, auto&, auto& g) { g.clock_mhz = 1005, g.slowed = "heat (hardware)"; },
         "its GPU runs at 1005 of 1980 MHz: heat (hardware)"},
        {"slower than the others", oddity_kind::gpu_slowed, [](auto&, auto&, auto& g) { g.clock_mhz = 1400; },
         "its GPU runs at 1400 of 1980 MHz, the others' at 1900"},
        {"idle", oddity_kind::gpu_idle, [](auto&, auto&, auto& g) { g.busy_percent = 20, g.clock_mhz = 300; },
         "its GPU is busy 20 % of the time, the others' 85 %"},
        {"errors", oddity_kind::gpu_errors, [](auto&, auto&, auto& g) { g.ecc_errors = 3; },
         "its GPU's memory has had 3 uncorrected errors"},
        {"silent", oddity_kind::silent, [](auto&, auto& r, auto&) { r.silent_s = 4001; },
         "it has written nothing for 01:06:41, the others for 00:06:40"},
        {"awaited", oddity_kind::awaited, [](auto&, auto& r, auto&) { r.waits->waiting = 0.05; },
         "keeps the others waiting 25 % of the time"},
    };
    for (auto const& one : cases)
        EXPECT_THAT(found_after(one.change), ElementsAre(oddity{5, "b", one.reason, one.kind})) << one.name;
    EXPECT_THAT(
        found_after([](auto& node, auto&, auto&) { node.steal = 0.3; }),
        ElementsAre(oddity{-1, "b", "the hypervisor gives 30 % of the node's processor time to others", oddity_kind::steal}));
}

TEST(oddities, that_hold_a_rank_up_are_the_cause_of_the_others_wait) {
    auto const awaited_with = [](std::function<void(node_sample&, rank_sample&, gpu_sample&)> const& change) {
        auto const found = found_after([&](auto& node, auto& rank, auto& gpu) {
            rank.waits->waiting = 0.0;
            change(node, rank, gpu);
        });
        return found.empty() ? oddity{} : found.front();
    };
    auto const because = [](std::string const& cause) {
        return oddity{5, "b", "keeps the others waiting 30 % of the time" + cause, oddity_kind::awaited};
    };
    EXPECT_EQ(awaited_with([](auto&, auto&, auto& g) { g.clock_mhz = 1005, g.slowed = "heat (hardware)"; }),
              because(": its GPU runs at 1005 of 1980 MHz: heat (hardware)"));
    EXPECT_EQ(awaited_with([](auto&, auto& r, auto&) { r.cgroup.throttled = 0.62; }),
              because(": its cgroup's quota held it back 62 % of the time"));
    EXPECT_EQ(awaited_with([](auto&, auto& r, auto&) { r.core_wait = 0.42; }),
              because(": it waits for a core 42 % of the time, which it shares"));
    EXPECT_EQ(awaited_with([](auto&, auto& r, auto&) { r.core_wait = 0.9, r.cgroup.throttled = 0.62; }),
              because(": its cgroup's quota held it back 62 % of the time"));
    EXPECT_EQ(awaited_with([](auto& n, auto&, auto&) { n.steal = 0.3; }),
              because(": the hypervisor gives 30 % of the node's processor time to others"));
    EXPECT_EQ(awaited_with([](auto&, auto&, auto&) {}), because(""));
    EXPECT_EQ(awaited_with([](auto&, auto& r, auto&) { r.silent_s = 5000; }), because("")) << "silence is no cause";
}

TEST(oddities, are_none_in_healthy_runs) {
    EXPECT_THAT(find_oddities({}), IsEmpty());
    EXPECT_THAT(find_oddities(make_healthy()), IsEmpty());
    for (unsigned jitter = 1; jitter <= 300; ++jitter) {
        auto const found = find_oddities(make_healthy(jitter));
        EXPECT_TRUE(found.empty()) << "jitter " << jitter << ": " << found.front().reason;
    }
}

TEST(oddities, need_what_they_compare_with) {
    run_samples alone = make_healthy();
    alone.nodes.resize(1);
    alone.nodes[0].ranks.resize(1);
    auto& rank = alone.nodes[0].ranks[0];
    auto& gpu = alone.nodes[0].gpus[0];
    rank.state = 'D';  // it computes between the looks
    rank.waits->waiting = 0;
    rank.silent_s = 5000;
    gpu.busy_percent = 10;
    gpu.clock_mhz = 300;  // idle GPUs lower their clocks
    EXPECT_THAT(find_oddities(alone), IsEmpty());

    run_samples unknown;  // ranks of which nothing can be told
    unknown.nodes.resize(3);
    for (auto& node : unknown.nodes) node.ranks.resize(2);
    EXPECT_THAT(find_oddities(unknown), IsEmpty());

    // Of two ranks, the second may be silent: rank 0 alone prints.
    auto two = make_healthy();
    two.nodes[1].ranks.clear();
    two.nodes[0].ranks.resize(2);
    two.nodes[0].ranks[1].silent_s = 5000;
    EXPECT_THAT(find_oddities(two), IsEmpty());

    // A rank loads its libraries from a disk.
    auto young = make_healthy();
    young.nodes[0].ranks[0].age_s = 3;
    young.nodes[0].ranks[0].faults_per_s = 3000;
    EXPECT_THAT(find_oddities(young), IsEmpty());
}

TEST(oddities, slow_gpus_are_found_even_if_all_are_slow) {
    auto run = make_healthy();
    for (auto& node : run.nodes)
        for (auto& gpu : node.gpus) gpu.clock_mhz = 1000, gpu.slowed = "power brake";
    EXPECT_EQ(find_oddities(run).size(), 8u);
    for (auto& node : run.nodes)
        for (auto& gpu : node.gpus) gpu.slowed.clear();  // a job may have chosen that clock
    EXPECT_THAT(find_oddities(run), IsEmpty());
}

TEST(oddities, are_no_ranks_with_other_work) {
    auto run = make_healthy();
    for (auto& rank : run.nodes[0].ranks) rank.waits->waiting = 0.01;
    EXPECT_THAT(find_oddities(run), IsEmpty()) << "half of the ranks";
    run = make_healthy();
    run.nodes[1].ranks[1].waits->waiting = 0.01;
    run.nodes[1].ranks[1].waits->kept_waiting_s = 0;
    EXPECT_THAT(find_oddities(run), IsEmpty()) << "no rank ever waited for it";
}

TEST(oddities, are_no_ranks_that_wait_for_the_others_too) {
    auto run = make_healthy();
    for (auto& node : run.nodes)
        for (auto& rank : node.ranks) rank.waits->waiting = 0.65;
    run.nodes[1].ranks[1].waits->waiting = 0.44;
    EXPECT_THAT(find_oddities(run), IsEmpty()) << "as two ranks beside busy loops";
    run.nodes[1].ranks[1].waits->waiting = 0.3;
    EXPECT_EQ(find_oddities(run).size(), 1u);
}

TEST(oddities, are_no_cores_that_all_ranks_share) {
    auto run = make_healthy();
    for (auto& node : run.nodes)
        for (auto& rank : node.ranks) rank.core_wait = 0.7, rank.cgroup.cpu_pressure = 0.9, rank.state = 'R', rank.cores = 0.3;
    EXPECT_THAT(find_oddities(run), IsEmpty());
}

}  // namespace
}  // namespace muster
