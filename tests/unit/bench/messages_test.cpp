// Tests of messages between two ranks: their orders, bandwidths, fits, CSV and JSON of known samples.
#include "bench/collectives/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

/// Four ranks on two hosts: messages of 1000 bytes between the first and the last.
messages_results sample() {
    messages_results r;
    r.hosts = {"a", "a", "b", "b"};
    r.backend = "mpi";
    r.first = 0;
    r.second = 3;
    r.sizes = {{1000, 64, {2, 4, 3}, {0.5, 0.5, 0.5}, {0.8, 0.8, 0.8}, 0}};
    return r;
}

/// Ranks whose every message takes 10 us, and arrives with one wrong byte.
struct slow_ranks : ordered_ranks {
    std::vector<std::string> orders;
    rank_answers ask(std::string const& order, duration) override {
        orders.push_back(order);
        return {10, 1, 0, 5};
    }
    std::string version(duration) override { return {}; }
};

TEST(messages, are_ordered_there_and_back_in_a_window_and_both_ways) {
    slow_ranks ranks;
    auto const size = measure_messages(ranks, 1 << 20, 2);
    EXPECT_EQ(size.window, 64);
    EXPECT_EQ(size.latency_us, (std::vector<double>{10, 10}));
    EXPECT_EQ(size.both_ways_us.size(), 2u);
    EXPECT_EQ(size.wrong, 8) << "of two tries and six samples";
    EXPECT_THAT(ranks.orders,
                testing::ElementsAre("messages 1048576 0 2 0", "messages 1048576 64 1 1", "messages 1048576 0 1000 0",
                                     "messages 1048576 64 31 0", "messages 1048576 64 31 1", "messages 1048576 0 1000 0",
                                     "messages 1048576 64 31 0", "messages 1048576 64 31 1"));
}

TEST(messages, bandwidths_are_of_one_way_or_both) {
    std::string const text = describe(sample());
    EXPECT_THAT(text, HasSubstr("rank 0 (a) and rank 3 (b), between nodes, by sendrecv over mpi"));
    // 1000 B every 0.5 us are 2000 MB/s; two messages of 1000 B in 0.8 us 2500.
    EXPECT_THAT(text, ContainsRegex("1000 +3.00 +67% +2000.00 +0% +2500.00 +0% +64 +0"));
}

TEST(messages, csv_and_json_keep_what_was_measured) {
    EXPECT_EQ(to_csv(sample()),
              "latency,-,2,2,mpi,u8,none,1000,2.0000,3.0000,3.0000,0.3333,0.3333,0\n"
              "bandwidth,-,2,2,mpi,u8,none,1000,0.5000,0.5000,0.5000,2.0000,2.0000,0\n"
              "bidirectional bandwidth,-,2,2,mpi,u8,none,1000,0.8000,0.8000,0.8000,2.5000,2.5000,0\n");
    auto const json = to_json(sample());
    EXPECT_EQ(json["schema"], "muster.messages/1");
    EXPECT_EQ(json["ranks"], (std::vector<int>{0, 3}));
    EXPECT_EQ(json["sizes"][0]["latency_us"], (std::vector<double>{2, 4, 3}));
    EXPECT_TRUE(json["fitted"].is_null()) << "one size determines nothing";
}

TEST(messages, alpha_and_beta_are_fitted_for_each_level) {
    auto r = sample();
    EXPECT_EQ(level_of(r), "between nodes");
    r.second = 1;
    r.sizes.clear();
    for (std::size_t const bytes : {8, 1000, 100000}) {
        double const us = 2 + static_cast<double>(bytes) / 5e3;
        r.sizes.push_back({bytes, 64, {us, us, us}, {us}, {us}, 0});
    }
    EXPECT_EQ(level_of(r), "in node");
    auto const fit = fit_of(r);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->alpha_us, 2, 1e-9);
    EXPECT_NEAR(fit->gbs, 5, 1e-9);
    for (double const error : fit->left_out) EXPECT_NEAR(error, 0, 1e-9);
    EXPECT_THAT(describe(r),
                HasSubstr("in node: alpha 2.00 us, beta 0.200 ns/B (5.00 GB/s), fitted to the latencies of 3 sizes"));
    EXPECT_NEAR(to_json(r)["fitted"]["gbs"].get<double>(), 5, 1e-9);
}

TEST(messages, a_wrong_byte_is_not_all_right) {
    auto r = sample();
    EXPECT_TRUE(all_right(r));
    r.sizes[0].wrong = 1;
    EXPECT_FALSE(all_right(r));
}

}  // namespace
}  // namespace muster
