// What is said about runs at their end.
#include "launch/samples/remarks/run_remarks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t gib = 1ull << 30;

/// 8 ranks on two nodes, a GPU each, after a run of `age_s`.
run_samples make_healthy(double age_s = 1000) {
    run_samples run;
    run.world_size = 8;
    for (int n = 0; n < 2; ++n) {
        node_sample node;
        node.host = n == 0 ? "a" : "b";
        node.cpus = 32;
        node.memory_bytes = 512 * gib;
        node.steal_s = 1;
        for (int g = 0; g < 4; ++g) {
            gpu_sample gpu;
            gpu.number = std::to_string(g);
            gpu.mean_busy_percent = 85;
            gpu.mean_clock_mhz = 1900;
            gpu.most_clock_mhz = 1980;
            gpu.slowed_share = 0.01;
            gpu.was_slowed = "heat (software)";
            node.gpus.push_back(gpu);
            rank_sample rank;
            rank.rank = 4 * n + g;
            rank.gpu = gpu.number;
            rank.age_s = age_s;
            rank.most_memory_bytes = 20 * gib;
            rank.cgroup.memory_limit_bytes = 128 * gib;
            rank.cgroup.throttled_of_run = 0.01;
            rank.waits.emplace().waited_s = 0.2 * age_s;
            node.ranks.push_back(rank);
        }
        run.nodes.push_back(std::move(node));
    }
    return run;
}

std::vector<std::string> texts(run_samples const& run) {
    std::vector<std::string> all;
    for (auto const& each : remarks_on(run)) all.push_back(each.text);
    return all;
}

TEST(run_remarks, are_none_on_healthy_or_short_runs) {
    EXPECT_THAT(texts(make_healthy()), IsEmpty());
    EXPECT_THAT(texts(run_samples()), IsEmpty());
    auto brief = make_healthy(29);
    brief.nodes[1].ranks[1].waits->waited_s = 0;
    EXPECT_THAT(texts(brief), IsEmpty());
}

TEST(run_remarks, name_who_kept_the_others_waiting_and_why) {
    auto run = make_healthy();
    run.nodes[1].ranks[1].waits->waited_s = 10;
    EXPECT_THAT(texts(run), ElementsAre("rank 5 on b kept the others waiting 19 % of the time"));
    EXPECT_EQ(remarks_on(run).front().host, "") << "the program may be at fault";
    auto& gpu = run.nodes[1].gpus[1];
    gpu.slowed_share = 0.9;
    gpu.was_slowed = "heat (hardware)";
    gpu.mean_clock_mhz = 1005;
    EXPECT_THAT(
        texts(run),
        ElementsAre("rank 5 on b kept the others waiting 19 % of the time: its GPU ran at 1005 of 1980 MHz: heat (hardware)"));
    auto const remark = remarks_on(run).front();
    EXPECT_EQ(remark.host, "b");
    EXPECT_EQ(remark.of_host,
              "had rank 5, which kept the others waiting 19 % of the time: its GPU ran at 1005 of 1980 MHz: heat (hardware)");
}

TEST(run_remarks, tell_of_waits_for_data) {
    auto run = make_healthy();
    auto const set = [&](double share) {
        for (auto& node : run.nodes)
            for (auto& rank : node.ranks) rank.data_wait_s = share * rank.age_s;
    };
    set(0.1);
    EXPECT_THAT(texts(run), IsEmpty());
    set(0.61);
    EXPECT_THAT(
        texts(run),
        ElementsAre("the ranks waited 61 % of the time for data: give the loader more workers, or stage the data nearer"));
    for (auto& node : run.nodes)
        for (auto& gpu : node.gpus) gpu.mean_busy_percent = 23;
    EXPECT_THAT(texts(run),
                ElementsAre("the GPUs of the ranks were busy 23 % of the time; the ranks waited 61 % of the time for data"));
}

TEST(run_remarks, tell_of_a_shared_core) {
    auto run = make_healthy();
    for (auto& node : run.nodes)
        for (auto& rank : node.ranks) rank.core_wait_s = 0.02 * rank.age_s;
    EXPECT_THAT(texts(run), IsEmpty());
    run.nodes[1].ranks[1].core_wait_s = 480;
    EXPECT_THAT(texts(run), ElementsAre("rank 5 on b: it waited for a core 48 % of the time, which it shares"));
    run.nodes[1].ranks[1].waits->waited_s = 10;
    EXPECT_THAT(
        texts(run),
        ElementsAre(
            "rank 5 on b kept the others waiting 19 % of the time: it waited for a core 48 % of the time, which it shares"));
}

TEST(run_remarks, tell_of_a_quota_and_of_a_busy_hypervisor) {
    auto run = make_healthy();
    run.nodes[0].ranks[2].cgroup.throttled_of_run = 0.4;
    run.nodes[1].steal_s = 0.2 * 32 * 1000;
    EXPECT_THAT(texts(run), ElementsAre("rank 2 on a: its cgroup's quota held it back 40 % of the time",
                                        "b: the hypervisor gave 20 % of the node's processor time to others"));
    EXPECT_EQ(remarks_on(run)[0].host, "");
    EXPECT_EQ(remarks_on(run)[1].host, "b");
    EXPECT_EQ(remarks_on(run)[1].of_host,
              "had a busy hypervisor: the hypervisor gave 20 % of the node's processor time to others");
}

TEST(run_remarks, tell_of_idle_gpus_and_of_memory_after_minutes) {
    auto const wasteful = [](double age_s) {
        auto run = make_healthy(age_s);
        for (auto& node : run.nodes) {
            for (auto& gpu : node.gpus) gpu.mean_busy_percent = 23;
            for (auto& rank : node.ranks) rank.most_memory_bytes = 7 * gib;
        }
        return run;
    };
    EXPECT_THAT(
        texts(wasteful(1000)),
        ElementsAre("the GPUs of the ranks were busy 23 % of the time; muster-bench scale shows what limits the steps",
                    "the job may use 128 GiB of memory on each node; its ranks used at most 28 GiB: ask for less (--mem)"));
    EXPECT_THAT(texts(wasteful(200)), IsEmpty());
    auto whole_node = wasteful(1000);
    for (auto& node : whole_node.nodes) node.memory_bytes = 130 * gib;
    EXPECT_EQ(texts(whole_node).size(), 1u);
}

TEST(run_remarks, begin_with_waits) {
    auto run = make_healthy();
    for (auto& rank : run.nodes[0].ranks) rank.cgroup.throttled_of_run = 0.3;
    run.nodes[1].ranks[3].waits->waited_s = 0;
    auto const said = texts(run);
    ASSERT_EQ(said.size(), 5u);
    EXPECT_EQ(said[0], "rank 7 on b kept the others waiting 20 % of the time");
}

}  // namespace
}  // namespace muster
