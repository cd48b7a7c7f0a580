#include "launch/samples/run_samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "launch/samples/sample_sums.hpp"
#include "tests/every_member.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The filler's texts hold what JSON, or a terminal, does not take.
template <typename T>
void clean(T& value) {
    if constexpr (std::is_same_v<T, std::string>)
        value = "text " + std::to_string(value.size()) + value.substr(0, value.find('\n'));
    else if constexpr (requires { value.has_value(); })
        clean(*value);
    else if constexpr (std::is_arithmetic_v<T>)
        ;
    else if constexpr (requires { value.begin(); })
        for (auto& each : value) clean(each);
    else
        std::apply([](auto&... member) { (clean(member), ...); }, members_of(value));
}

TEST(run_samples, come_back_with_every_member) {
    auto sent = member_filler(true).make<run_samples>();
    clean(sent);
    ASSERT_EQ(sent.nodes.size(), 2u);
    ASSERT_TRUE(sent.nodes[1].ranks[1].waits.has_value());
    auto const text = samples_json(sent);
    EXPECT_EQ(text.find('\n'), text.size() - 1);
    auto const back = parse_samples(text);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, sent);
}

TEST(run_samples, leave_out_what_is_not_known) {
    run_samples all;
    all.nodes.emplace_back().ranks.emplace_back();
    auto const text = samples_json(all);
    for (auto const* name : {"user_s", "metric", "cgroup", "waits", "load", "null"})
        EXPECT_EQ(text.find(name), std::string::npos) << name << " in " << text;
    EXPECT_EQ(parse_samples(text), all);
}

TEST(run_samples, of_a_rank_take_at_most_a_kibibyte) {
    auto rank = member_filler(true).make<rank_sample>();
    auto const widen = [](auto& number) { number = 123'456'789'012.3456; };
    widen(rank.user_s), widen(rank.system_s), widen(rank.age_s), widen(rank.silent_s), widen(rank.cgroup.throttled_s);
    rank.memory_bytes = rank.most_memory_bytes = rank.read_bytes = rank.written_bytes = 123'456'789'012'345;
    rank.where = std::string(20, 'w');
    rank.metric = std::string(80, 'm');
    rank.gpu = "0/3";
    run_samples all;
    all.nodes.emplace_back().ranks = {rank};
    auto const one = samples_json(all).size();
    all.nodes[0].ranks = {rank, rank};
    EXPECT_LE(samples_json(all).size() - one, 1024u);
}

TEST(run_samples, are_read_from_any_text) {
    for (auto const* text : {"", "[1]", "{}", "null", R"({"schema": "muster.samples/2"})", "{\"schema\": \"muster.samples/1\""})
        EXPECT_FALSE(parse_samples(text).has_value()) << text;
    auto const found =
        parse_samples(R"({"schema": "muster.samples/1", "command": "a\u001b[2J\nb", "world_size": 1e300, "job": 7, "nodes":
        [3, {"host": "n\u0007", "load": "x", "cpus": -9, "ranks": [[], {"rank": 3, "state": "RR", "cores": 1e300, "threads": 2.5e9, "age_s": -1e19,
        "cgroup": [], "waits": 5}, {"state": "\u0001"}], "gpus": {"number": "0"}}]})");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->command.find_first_of("\x1b\n"), std::string::npos);
    EXPECT_EQ(found->world_size, 0);
    EXPECT_EQ(found->job, "");
    ASSERT_EQ(found->nodes.size(), 1u);
    auto const& node = found->nodes[0];
    EXPECT_EQ(node.host.find('\a'), std::string::npos);
    EXPECT_FALSE(node.load || node.cpus);
    EXPECT_THAT(node.gpus, IsEmpty());
    ASSERT_EQ(node.ranks.size(), 2u);
    rank_sample rank;
    rank.rank = 3;
    EXPECT_EQ(node.ranks[0], rank);
    EXPECT_EQ(node.ranks[1], rank_sample());
    std::string deep = R"({"schema": "muster.samples/1", "nodes": )";
    for (int i = 0; i < 100'000; ++i) deep += '[';
    EXPECT_FALSE(parse_samples(deep).has_value());
}

gpu_sample make_gpu(int busy, std::uint64_t used, int clock, std::string slowed) {
    gpu_sample gpu;
    gpu.number = "0";
    gpu.busy_percent = busy;
    gpu.used_bytes = used;
    gpu.clock_mhz = clock;
    gpu.slowed = std::move(slowed);
    return gpu;
}

TEST(sample_sums, keep_what_is_told_of_the_whole_run) {
    sample_sums sums;
    node_sample look;
    look.ranks.emplace_back().rank = 0;
    for (auto const& gpu :
         {make_gpu(50, 30, 1800, ""), make_gpu(100, 10, 1200, "heat (hardware)"), make_gpu(0, 20, 210, "power brake")}) {
        look.gpus = {gpu};
        sums.note("node1", look, 7);
    }
    auto nodes = sums.nodes({{0, 0}});
    ASSERT_EQ(nodes.size(), 1u);
    auto wanted = make_gpu(0, 20, 210, "power brake");
    wanted.mean_busy_percent = 50;
    wanted.most_used_bytes = 30;
    wanted.mean_clock_mhz = 1500;
    wanted.slowed_share = 0.5;
    wanted.was_slowed = "heat (hardware)";
    EXPECT_THAT(nodes[0].gpus, ElementsAre(wanted));

    gpu_sample silent;
    silent.number = "0";
    look.gpus = {silent};
    sums.note("node1", look, 8);
    auto const last = sums.nodes({{0, 0}}).at(0).gpus.at(0);
    EXPECT_FALSE(last.busy_percent || last.used_bytes || last.clock_mhz);
    EXPECT_EQ(last.mean_busy_percent, 50);
    EXPECT_EQ(last.most_used_bytes, 30u);
}

TEST(sample_sums, count_errors_of_gpus_from_the_first_look) {
    sample_sums sums;
    node_sample look;
    look.ranks.emplace_back().rank = 0;
    auto const note = [&](std::optional<std::int64_t> errors) {
        look.gpus = {make_gpu(50, 30, 1800, "")};
        look.gpus[0].ecc_errors = errors;
        sums.note("node1", look, 7);
        return sums.nodes({{0, 0}}).at(0).gpus.at(0).ecc_errors;
    };
    EXPECT_EQ(note(std::nullopt), std::nullopt);
    EXPECT_EQ(note(7), 0);
    EXPECT_EQ(note(9), 2);
}

node_sample look_with_waits(int rank, std::vector<waits_for_rank> longest) {
    node_sample look;
    auto& one = look.ranks.emplace_back();
    one.rank = rank;
    one.waits.emplace().collectives = 100;
    one.waits->longest = std::move(longest);
    return look;
}

TEST(sample_sums, tell_whom_others_waited_for) {
    sample_sums sums;
    sums.note("a", look_with_waits(0, {{2, 90, 5.0}, {1, 10, 1.0}}), 7);
    sums.note("b", look_with_waits(1, {{2, 80, 4.0}}), 7);
    sums.note("b", look_with_waits(2, {}), 7);
    auto nodes = sums.nodes({{0, 0}, {1, 1}, {2, 2}});
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_EQ(nodes[1].ranks.at(1).waits->kept_waiting_s, 9.0);
    EXPECT_EQ(nodes[1].ranks.at(1).waits->came_last, 90u);
    EXPECT_EQ(nodes[0].ranks.at(0).waits->came_last, 0u);
    // After a loss in place the ranks have other numbers than those that they counted for.
    nodes = sums.nodes({{0, 0}, {2, 1}});
    EXPECT_EQ(nodes[1].ranks.at(0).waits->came_last, std::nullopt);
    EXPECT_TRUE(nodes[0].ranks.at(0).waits->longest.empty());
}

TEST(sample_sums, do_not_tell_of_ranks_that_nobody_names) {
    sample_sums sums;
    std::vector<present_rank> all;
    for (int rank = 0; rank < 8; ++rank) {
        sums.note("a", look_with_waits(rank, {{3, 90, 5.0}}), 7);
        all.push_back({rank, rank});
    }
    auto const nodes = sums.nodes(all);
    EXPECT_EQ(nodes.at(0).ranks.at(3).waits->came_last, 90u);
    EXPECT_EQ(nodes.at(0).ranks.at(4).waits->came_last, std::nullopt) << "it may have been the fifth of all";
    sample_sums few;
    few.note("a", look_with_waits(0, {{1, 20, 5.0}}), 7);
    few.note("a", look_with_waits(1, {}), 7);
    EXPECT_EQ(few.nodes({{0, 0}, {1, 1}}).at(0).ranks.at(1).waits->came_last, std::nullopt) << "most waits do not tell";
}

TEST(sample_sums, bring_parts_of_looks_together) {
    sample_sums sums;
    EXPECT_TRUE(sums.empty());
    auto const look_at = [](int rank, std::optional<int> cpus) {
        node_sample look;
        look.cpus = cpus;
        look.ranks.emplace_back().rank = rank;
        return look;
    };
    sums.note("node2", look_at(2, 16), 5);
    sums.note("node1", look_at(1, std::nullopt), 5);
    sums.note("node1", look_at(0, 8), 6);
    sums.note("node1", look_at(1, std::nullopt), 7);
    auto const nodes = sums.nodes({{0, 1}, {1, 0}, {2, 2}, {3, 3}});
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_EQ(nodes[0].host, "node1");
    EXPECT_EQ(nodes[0].at_s, 7);
    EXPECT_EQ(nodes[0].cpus, 8) << "a look at a rank alone leaves the node's figures";
    ASSERT_EQ(nodes[0].ranks.size(), 2u);
    EXPECT_EQ(nodes[0].ranks[0].rank, 0);
    EXPECT_EQ(nodes[0].ranks[1].rank, 1);
    EXPECT_EQ(nodes[1].ranks.at(0).rank, 2);
    EXPECT_EQ(sums.nodes({{1, 0}}).size(), 1u) << "ranks that are not present vanish, and nodes without any";
}

}  // namespace
}  // namespace muster
