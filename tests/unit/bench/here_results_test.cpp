// Tests of muster-bench collectives-here's results: times over ranks, bandwidths, CSV and JSON of known samples.
#include "bench/collectives/rank/here_results.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Four ranks on two hosts: an allreduce of 1 MB in 500 us by the slowest rank, and messages of 1000 bytes.
here_results here_sample() {
    here_results r;
    r.backend = "mpi";
    r.why_backend = "backend mpi, asked for by name; and so on";
    r.hosts = {"a", "a", "b", "b"};
    here_size size;
    size.bytes = 1'000'000;
    size.out_of_place = {{100, 200, 400}, {200, 300, 500}, {900, 900, 900}};
    r.tables.push_back({{collective::kind::allreduce, dtype::f32, reduction::sum, 0}, {size}});
    r.pairs.push_back({0, 3, {{1000, 64, {2, 4, 3}, {0.5, 0.5, 0.5}, {0.8, 0.8, 0.8}, 0}}});
    return r;
}

TEST(here_results, times_are_over_the_ranks) {
    EXPECT_EQ(over_ranks(std::vector<double>{3, 1, 5}), (rank_times{1, 3, 5}));
    EXPECT_EQ(medians(here_sample().tables[0].sizes[0].out_of_place), (rank_times{200, 300, 500}));
}

TEST(here_results, bandwidths_are_the_slowest_ranks) {
    // algbw 1e6 B / 500 us = 2 GB/s; busbw of an allreduce on 4 ranks 2 * 3 / 4 of it.
    EXPECT_DOUBLE_EQ(average_busbw(here_sample().tables[0], 4), 3.0);
    std::string const text = describe(here_sample());
    EXPECT_THAT(text, HasSubstr("4 ranks on 2 hosts"));
    EXPECT_THAT(text, ContainsRegex("1000000 +250000 +f32 +sum +-1 +200.00 +300.00 +500.00 +2.00 +3.00 +0 +- "));
    EXPECT_THAT(text, HasSubstr("average busbw 3.000 GB/s"));
    EXPECT_THAT(text, HasSubstr("rank 0 (a) and rank 3 (b)"));
    // 1000 B every 0.5 us are 2000 MB/s; two messages of 1000 B in 0.8 us 2500.
    EXPECT_THAT(text, ContainsRegex("1000 +3.00 +67% +2000.00 +0% +2500.00 +0% +64 +0"));
}

TEST(here_results, csv_has_a_line_for_each_size_and_place) {
    std::string const csv = to_csv(here_sample());
    EXPECT_THAT(csv,
                HasSubstr("what,place,ranks,hosts,backend,type,redop,bytes,min_us,avg_us,max_us,algbw_gbs,busbw_gbs,wrong\n"));
    EXPECT_THAT(csv, HasSubstr("\nallreduce,out,4,2,mpi,f32,sum,1000000,200.0000,300.0000,500.0000,2.0000,3.0000,0\n"));
    EXPECT_THAT(csv, Not(HasSubstr("allreduce,in")));
    EXPECT_THAT(csv, HasSubstr("\nbidirectional bandwidth,-,2,2,mpi,u8,none,1000,0.8000,0.8000,0.8000,2.5000,2.5000,0\n"));
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
}

TEST(here_results, json_keeps_every_sample) {
    auto const json = to_json(here_sample());
    EXPECT_EQ(json["schema"], "muster.collectives-here/1");
    EXPECT_EQ(json["tables"][0]["sizes"][0]["out_of_place_us"][2]["max"], 900);
    EXPECT_EQ(json["pairs"][0]["ranks"], (std::vector<int>{0, 3}));
    EXPECT_EQ(json["pairs"][0]["sizes"][0]["latency_us"], (std::vector<double>{2, 4, 3}));
}

TEST(here_results, alpha_and_beta_are_fitted_for_each_level) {
    here_results r = here_sample();
    EXPECT_FALSE(fit_of(r.pairs[0])) << "one size determines nothing";
    r.pairs.push_back({0, 1, {}});
    for (std::size_t const bytes : {8, 1000, 100000}) {
        double const us = 2 + static_cast<double>(bytes) / 5e3;
        r.pairs[1].sizes.push_back({bytes, 64, {us, us, us}, {us}, {us}, 0});
    }
    EXPECT_EQ(level_of(r, r.pairs[0]), "between nodes");
    EXPECT_EQ(level_of(r, r.pairs[1]), "in node");
    auto const fit = fit_of(r.pairs[1]);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->alpha_us, 2, 1e-9);
    EXPECT_NEAR(fit->gbs, 5, 1e-9);
    for (double const error : fit->left_out) EXPECT_NEAR(error, 0, 1e-9);
    EXPECT_THAT(describe(r),
                HasSubstr("in node: alpha 2.00 us, beta 0.200 ns/B (5.00 GB/s), fitted to the latencies of 3 sizes"));
    EXPECT_NEAR(to_json(r)["pairs"][1]["fitted"]["gbs"].get<double>(), 5, 1e-9);
}

TEST(here_results, a_wrong_element_is_not_all_right) {
    here_results r = here_sample();
    EXPECT_TRUE(all_right(r));
    r.tables[0].sizes[0].wrong_out = 1;
    EXPECT_FALSE(all_right(r));
    r = here_sample();
    r.pairs[0].sizes[0].wrong = 1;
    EXPECT_FALSE(all_right(r));
}

}  // namespace
}  // namespace muster
