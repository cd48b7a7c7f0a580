// Tests of muster-bench collectives: cases, values, sizes of gradients, bandwidths, comparisons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/collectives/collectives_case.hpp"
#include "bench/collectives/collectives_job.hpp"
#include "bench/collectives/collectives_table.hpp"
#include "bench/collectives/collectives_values.hpp"
#include "bench/tools/gradient_sets.hpp"

namespace muster {
namespace {

using kind = collective::kind;
using testing::HasSubstr;
using testing::Not;

TEST(gradient_sets, have_the_published_numbers_of_parameters) {
    EXPECT_EQ(gradients_of("resnet50").elements.size(), 161u);
    EXPECT_EQ(gradients_of("resnet50").parameters(), 25'557'032u);
    EXPECT_EQ(gradients_of("gpt2").elements.size(), 148u);
    EXPECT_EQ(gradients_of("gpt2").parameters(), 124'439'808u);
    EXPECT_EQ(gradients_of("cifar").parameters(), 269'722u);
    EXPECT_EQ(gradients_of("mnist").parameters(), 21'840u);
    EXPECT_THROW(gradients_of("vgg"), error);
}

TEST(collective_cases, all_combinations_that_mean_something) {
    auto const cases = cases_of(parse_kinds("allreduce,broadcast"), parse_types("f32,int8"), parse_reductions("sum,avg"), 1);
    std::vector<collective_case> const wanted{{kind::allreduce, dtype::f32, reduction::sum, 1},
                                              {kind::allreduce, dtype::f32, reduction::average, 1},
                                              {kind::allreduce, dtype::i8, reduction::sum, 1},
                                              {kind::broadcast, dtype::f32, reduction::sum, 1},
                                              {kind::broadcast, dtype::i8, reduction::sum, 1}};
    EXPECT_EQ(cases, wanted);
    EXPECT_EQ(parse_kinds("all").size(), 5u);
    EXPECT_EQ(parse_types("all").size(), 8u);
    EXPECT_THROW(parse_kinds("allreduce,gather"), error);
    EXPECT_EQ(redop_of(cases[3]) + root_of(cases[3]), "none1");
    EXPECT_EQ(redop_of(cases[1]) + root_of(cases[1]), "avg-1");
}

TEST(collective_cases, sizes_and_counts_are_those_of_nccl_tests) {
    collective_case const gather{kind::allgather, dtype::f64, reduction::sum, 0}, reduce{};
    EXPECT_EQ(fitting_bytes(gather, 100, 3), 96u);
    EXPECT_EQ(fitting_bytes(gather, 1, 3), 24u) << "never empty";
    EXPECT_EQ(count_of(gather, 96, 3), 4u) << "of a rank's part";
    EXPECT_EQ(count_of(reduce, 96, 3), 24u);
    collectives_plan plan;
    plan.sizes = {8, 16, 64};
    EXPECT_EQ(tensor_sets(plan, gather, 3), (std::vector<std::vector<std::size_t>>{{24}, {48}}));
}

TEST(collective_cases, factors_of_bandwidth_and_bound) {
    EXPECT_DOUBLE_EQ(bus_factor(kind::allreduce, 4), 1.5);
    EXPECT_DOUBLE_EQ(bus_factor(kind::alltoall, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor(kind::broadcast, 4), 1);
    EXPECT_DOUBLE_EQ(bound_us(kind::allreduce, 1000000, 2, 7), 1000);
    EXPECT_DOUBLE_EQ(bound_us(kind::reducescatter, 1000000, 2, 3), 1000);
    EXPECT_DOUBLE_EQ(bound_us(kind::broadcast, 1000000, 2, 2), 1000);
    EXPECT_DOUBLE_EQ(bound_us(kind::allgather, 1000000, 2, 4), 1000);
}

TEST(collective_cases, what_peers_have) {
    EXPECT_NE(peer_lacks("gloo", {kind::allgather, dtype::bf16, reduction::sum, 0}), "");
    EXPECT_EQ(peer_lacks("openmpi", {kind::allgather, dtype::bf16, reduction::sum, 0}), "");
    EXPECT_NE(peer_lacks("openmpi", {kind::allreduce, dtype::bf16, reduction::sum, 0}), "");
    EXPECT_NE(peer_lacks("gloo", {kind::reducescatter, dtype::f32, reduction::sum, 0}), "");
    EXPECT_NE(peer_lacks("mpich", {kind::allreduce, dtype::f32, reduction::average, 0}), "");
    EXPECT_EQ(peer_lacks("raw-nccl", {kind::allreduce, dtype::bf16, reduction::average, 0}), "");
}

TEST(collectives_values, every_reduction_of_them_is_exact) {
    for (auto const ranks : {1, 2, 3, 4, 7, 16, 200, 1024})
        for (auto const& of : cases_of(parse_kinds("allreduce"), parse_types("all"), parse_reductions("all"), 0)) {
            auto const rule = rule_for(of, ranks);
            unsigned const limit = of.type == dtype::i8     ? 127
                                   : of.type == dtype::u8   ? 255
                                   : of.type == dtype::bf16 ? 256
                                   : of.type == dtype::f16  ? 2048
                                                            : 1u << 24;
            if (of.how == reduction::sum || of.how == reduction::average) {
                EXPECT_LE(rule.mask * rule.scale * rule.active, limit) << to_order(of, rule);
            }
            if (of.how == reduction::product) {
                EXPECT_LE(1u << rule.active, limit) << to_order(of, rule);
            }
        }
    EXPECT_EQ(rule_for({}, 2), (value_rule{63, 1, 2, false}));
}

TEST(collectives_values, a_wrong_element_is_counted) {
    collective_case const of{kind::allreduce, dtype::f16, reduction::average, 0};
    auto const rule = rule_for(of, 3);
    constexpr std::size_t count = 1000;
    std::vector<half> ranks[3], result(count);
    for (int rank = 0; rank < 3; ++rank) {
        ranks[rank].resize(count);
        fill_values(rule, of.type, ranks[rank].data(), count, 0, {2, 5}, rank);
        EXPECT_EQ(count_wrong(rule, of.type, ranks[rank].data(), count, 0, {2, 5}, rank), 0u);
        EXPECT_GT(count_wrong(rule, of.type, ranks[rank].data(), count, 1, {2, 5}, rank), count / 2) << "moved by one";
        EXPECT_GT(count_wrong(rule, of.type, ranks[rank].data(), count, 64, {2, 5}, rank), count / 2) << "moved by 64";
        EXPECT_GT(count_wrong(rule, of.type, ranks[rank].data(), count, 0, {2, 6}, rank), count / 2) << "of another sample";
    }
    for (std::size_t i = 0; i < count; ++i)
        result[i] =
            half((static_cast<float>(ranks[0][i]) + static_cast<float>(ranks[1][i]) + static_cast<float>(ranks[2][i])) / 3);
    EXPECT_EQ(count_wrong_reduced(rule, of.type, of.how, result.data(), count, 0, {2, 5}, 3), 0u);
    result[999] = half(static_cast<float>(result[999]) + 1);
    EXPECT_EQ(count_wrong_reduced(rule, of.type, of.how, result.data(), count, 0, {2, 5}, 3), 1u);
    EXPECT_EQ(count_wrong_reduced(rule, of.type, of.how, result.data() + 10, count - 10, 10, {2, 5}, 3), 1u);
}

collectives_results sample() {
    collectives_results results;
    results.ranks = 2;
    results.triad_gbs = 20;
    results.jobs = {{"shm", "muster", true},
                    {"mpi", "muster", true},
                    {"openmpi", "Open MPI", false},
                    {"mpich", "MPICH", false},
                    {"raw-nccl", "NCCL", false, memory_of_tensors::device}};
    auto const add = [&](std::string const& job, std::size_t bytes, double us) {
        results.cells.push_back({job, bytes, 1, 1, {{us, us, us * 2}, {}, {}}, {{us}, {}, {}}});
    };
    add("shm", 8, 1);
    add("mpi", 8, 0.5);
    add("openmpi", 8, 4);
    add("mpich", 8, 2);
    add("raw-nccl", 8, 0.1);
    add("shm", 1 << 26, 40e3);
    add("mpich", 1 << 26, 20e3);
    return results;
}

TEST(collectives_table, compares_with_the_fastest_peer_of_the_same_memory_and_not_with_our_own) {
    auto const all = compare_with_peers(sample(), "shm");
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].best, "mpich");
    EXPECT_DOUBLE_EQ(all[0].best_us, 2);
    EXPECT_DOUBLE_EQ(mean_advantage(all), 1.0) << "twice as fast and half as fast";
    EXPECT_EQ(mean_advantage({}), 0);
}

TEST(collectives_table, counts_as_nccl_tests_do) {
    auto const text = describe(sample());
    EXPECT_THAT(text, HasSubstr("count  type  redop  root  by "));
    EXPECT_THAT(text, HasSubstr("59%")) << "64 MiB x 7 / 20 GB/s of 40 ms";
    EXPECT_THAT(text, HasSubstr("shm: 1.00 times as fast"));
    auto busy = sample();
    busy.machine.cores = 2;
    EXPECT_THAT(describe(busy), Not(HasSubstr("uncertain")));
    busy.load = 21;
    EXPECT_THAT(describe(busy), HasSubstr("as the best peer of each size, at a load of 21.0 that makes this ratio uncertain ("));
    auto broadcast = sample();
    broadcast.of = {kind::broadcast, dtype::i64, reduction::sum, 1};
    for (auto& cell : broadcast.cells) cell.out.us.clear();
    EXPECT_THAT(describe(broadcast), HasSubstr("i64   none      1"));
    EXPECT_THAT(describe(broadcast), HasSubstr("17%")) << "64 MiB x 2 / 20 GB/s of 40 ms, in place";
    auto const document = to_json(broadcast);
    EXPECT_EQ(document["cells"].size(), 7u);
    EXPECT_EQ(document["jobs"][0]["memory"], "plain");
    EXPECT_EQ(document["jobs"][4]["memory"], "device");
    EXPECT_EQ(document["collective"], "broadcast");
    EXPECT_EQ(document["root"], 1);
}

/// Four ranks on two hosts: an allreduce of 1 MB in 500 us by the slowest rank.
collectives_results job_sample() {
    collectives_results r;
    r.hosts = {"a", "a", "b", "b"};
    r.ranks = 4;
    r.jobs = {{"mpi", "muster", true}};
    r.cells = {{"mpi", 1'000'000, 1, 1, {{400, 500, 900}, {100, 200, 900}, {200, 300, 900}}}};
    return r;
}

TEST(collectives_table, bandwidths_of_a_job_are_the_slowest_ranks) {
    // algbw 1e6 B / 500 us = 2 GB/s; busbw of an allreduce on 4 ranks 2 * 3 / 4 of it.
    auto const text = describe(job_sample());
    EXPECT_THAT(text, HasSubstr("4 ranks on 2 hosts"));
    EXPECT_THAT(text,
                testing::ContainsRegex("1000000 +250000 +f32 +sum +-1 +mpi +200.00 +300.00 +500.00 +100% +2.00 +3.00 +0 +- "));
    EXPECT_THAT(text, HasSubstr("average busbw GB/s: mpi 3.000"));
    EXPECT_EQ(csv_head(), "what,place,ranks,hosts,backend,type,redop,bytes,min_us,avg_us,max_us,algbw_gbs,busbw_gbs,wrong\n");
    EXPECT_EQ(to_csv(job_sample()), "allreduce,out,4,2,mpi,f32,sum,1000000,200.0000,300.0000,500.0000,2.0000,3.0000,0\n");
    auto const json = to_json(job_sample());
    EXPECT_EQ(json["hosts"].size(), 4u);
    EXPECT_EQ(json["cells"][0]["out_of_place_us"][2], 900);
}

TEST(collectives_table, a_wrong_element_is_not_all_right) {
    auto r = job_sample();
    EXPECT_TRUE(all_right(r));
    r.cells[0].out.wrong = 1;
    EXPECT_FALSE(all_right(r));
}

TEST(ordered_ranks, answers_are_taken_together) {
    std::vector<rank_answer> const ranks{{3, 0}, {1, 2}, {5, 1}};
    EXPECT_EQ(answers_of(ranks), (rank_answers{5, 3, 1, 3}));
}

}  // namespace
}  // namespace muster
