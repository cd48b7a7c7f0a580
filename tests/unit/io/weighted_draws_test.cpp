#include "io/loader/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"
#include "io/loader/sampler.hpp"

namespace muster {
namespace {

std::string refusal(std::vector<double> weights, std::size_t draws, bool replacement) {
    try {
        weighted_draws(std::move(weights), draws, replacement);
    } catch (error const& problem) {
        EXPECT_EQ(problem.code(), errc::usage);
        return problem.what();
    }
    return "";
}

TEST(weighted_draws, come_as_often_as_their_weights_say) {
    std::vector<double> const weights{1, 0, 3, 0.5, 5.5, 0, 2};
    sampler const by(weights, {.draws = 120000, .replacement = true}, {.seed = 8});
    std::vector<double> times(weights.size(), 0);
    for (std::uint64_t const i : by.indices(0, 0, 1)) ++times.at(i);
    double chi_square = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        double const expected = 120000 * weights[i] / 12;
        if (weights[i] == 0)
            EXPECT_EQ(times[i], 0) << "sample " << i << " has weight 0";
        else
            chi_square += (times[i] - expected) * (times[i] - expected) / expected;
    }
    EXPECT_LT(chi_square, 18.5) << "p < 0.001 with 4 degrees of freedom";
}

TEST(weighted_draws, without_replacement_none_comes_twice_and_the_first_follows_the_weights) {
    std::vector<double> const weights{1, 2, 0, 3, 4};
    sampler const by(weights, {.draws = 4, .replacement = false}, {.seed = 8});
    std::map<std::uint64_t, double> first;
    constexpr int epochs = 20000;
    for (int epoch = 0; epoch < epochs; ++epoch) {
        auto const drawn = by.indices(static_cast<std::uint64_t>(epoch), 0, 1);
        ASSERT_EQ(std::set<std::uint64_t>(drawn.begin(), drawn.end()), (std::set<std::uint64_t>{0, 1, 3, 4}));
        ++first[drawn[0]];
    }
    double chi_square = 0;
    for (auto const& [sample, n] : first) {
        double const expected = epochs * weights[sample] / 10;
        chi_square += (n - expected) * (n - expected) / expected;
    }
    EXPECT_LT(chi_square, 16.3) << "p < 0.001 with 3 degrees of freedom";
}

TEST(weighted_draws, are_the_same_for_any_world_and_resume_anywhere) {
    std::vector<double> weights(500);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i % 7);
    for (bool const replacement : {true, false}) {
        sampler const by(weights, {.draws = 301, .replacement = replacement});
        auto const alone = by.indices(3, 0, 1);
        ASSERT_EQ(alone.size(), 301u);
        EXPECT_NE(alone, by.indices(4, 0, 1));
        for (int const world : {1, 2, 5})
            for (std::uint64_t const start : {0u, 10u, 301u})
                for (int rank = 0; rank < world; ++rank) {
                    auto const part = by.indices({3, rank, world, start});
                    for (std::size_t i = 0; i < part.size(); ++i)
                        ASSERT_EQ(part[i], alone[start + static_cast<std::size_t>(rank) + i * static_cast<std::size_t>(world)]);
                }
    }
}

TEST(weighted_draws, impossible_weights_are_refused) {
    using testing::HasSubstr;
    EXPECT_THAT(refusal({1, -1}, 1, true), HasSubstr("the weight of sample 1 is -1"));
    EXPECT_THAT(refusal({std::nan("")}, 1, true), HasSubstr("the weight of sample 0"));
    EXPECT_THAT(refusal({std::numeric_limits<double>::infinity()}, 1, true), HasSubstr("the weight of sample 0"));
    EXPECT_THAT(refusal({0, 0}, 1, true), HasSubstr("none of 2 weights is positive"));
    EXPECT_THAT(refusal({}, 1, true), HasSubstr("none of 0 weights is positive"));
    EXPECT_THAT(refusal({1, 0, 1}, 3, false), HasSubstr("3 draws without replacement from 2 samples"));
    EXPECT_EQ(refusal({}, 0, true), "");
    EXPECT_THROW(sampler({1.0}, {.draws = 1}, {.spread = spread_rule::sharded}), error);
    EXPECT_THROW(sampler({1.0}, {.draws = 1}, {.shuffle = false}), error);
}

TEST(by_node_sampler, ranks_of_a_node_draw_from_its_shards_together) {
    constexpr std::size_t samples = 103;
    for (auto const window : {shuffle_window{}, shuffle_window{8, 2}}) {
        sampler const by(samples, {.seed = 5, .spread = spread_rule::by_node, .window = window});
        rank_range const nodes[]{{0, 2}, {2, 3}, {5, 1}};  // of different size
        std::vector<int> times(samples, 0);
        bool other_shard = false;
        for (rank_range const node : nodes)
            for (int rank = node.first; rank < node.first + node.count; ++rank) {
                auto const whole = by.indices({.epoch = 1, .rank = rank, .world = 6, .node = node});
                ASSERT_EQ(whole.size(), shard_of(samples, rank, 6).count);
                for (std::uint64_t const i : whole) {
                    ++times[i];
                    ASSERT_TRUE(i >= shard_of(samples, node.first, 6).first &&
                                i < shard_of(samples, node.first + node.count - 1, 6).end());
                    hyperslab const own = shard_of(samples, rank, 6);
                    other_shard = other_shard || i < own.first || i >= own.end();
                }
                auto const rest = by.indices({.epoch = 1, .rank = rank, .world = 6, .start = 60, .node = node});
                EXPECT_EQ(rest, std::vector<std::uint64_t>(whole.begin() + 10, whole.end()));
            }
        EXPECT_TRUE(other_shard) << "that would be sharded";
        for (int const n : times) ASSERT_EQ(n, 1);
    }
    EXPECT_THROW(sampler(10, {.spread = spread_rule::by_node}).indices(0, 0, 1), error) << "its node was not told";
}

}  // namespace
}  // namespace muster
