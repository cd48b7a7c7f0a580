#include "io/loader/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "io/loader/windowed_order.hpp"

namespace muster {
namespace {

constexpr std::array sizes{0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 255, 256, 257, 1000, 4097};
constexpr std::array worlds{1, 2, 3, 4, 5, 7, 8, 16, 100, 1000};

/// How often each sample comes in all ranks' parts.
std::vector<int> cover(sampler const& s, std::uint64_t epoch, int world, std::uint64_t start = 0) {
    std::vector<int> times(s.size(), 0);
    for (int rank = 0; rank < world; ++rank)
        for (std::uint64_t const i : s.indices({epoch, rank, world, start})) ++times.at(i);
    return times;
}

TEST(permutation, is_a_bijection_for_every_size) {
    for (std::uint64_t size = 1; size < 600; ++size) {
        permutation const order(size, size * 77);
        std::vector<bool> seen(size);
        for (std::uint64_t i = 0; i < size; ++i) {
            ASSERT_LT(order(i), size);
            ASSERT_FALSE(seen[order(i)]) << size;
            seen[order(i)] = true;
        }
    }
}

// The values are part of the definition: results stay the same from version to version and from machine to machine.
TEST(permutation, is_the_one_that_the_header_defines) {
    auto const first_of = [](std::uint64_t size, std::uint64_t key) {
        permutation const order(size, key);
        return std::vector<std::uint64_t>{order(0), order(1), order(2), order(3)};
    };
    EXPECT_EQ(permutation::mix(1), 0x5692161d100b05e5u);
    EXPECT_EQ(first_of(10, 0), (std::vector<std::uint64_t>{1, 4, 8, 3}));
    EXPECT_EQ(first_of(60000, 42), (std::vector<std::uint64_t>{10301, 44628, 31611, 56233}));
    EXPECT_EQ(first_of(std::uint64_t{1} << 40, 7),
              (std::vector<std::uint64_t>{71808465262, 903249945892, 256288566933, 17536502044}));
}

TEST(permutation, many_at_once_are_the_same_as_one_by_one) {
    for (std::uint64_t const size : {1u, 5u, 129u, 1000u, 60000u})
        for (std::uint64_t const step : {1u, 3u}) {
            permutation const order(size, 99);
            std::vector<std::uint64_t> many((size - 1) / step + 1);
            order.fill(0, step, many);
            for (std::size_t i = 0; i < many.size(); ++i) ASSERT_EQ(many[i], order(i * step));
        }
}

TEST(permutation, has_an_inverse) {
    for (std::uint64_t const size : {1u, 2u, 5u, 256u, 257u, 60000u}) {
        permutation const order(size, 31);
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(size, 1000); ++i) ASSERT_EQ(order.position_of(order(i)), i) << size;
    }
}

TEST(permutation, small_orders_come_about_equally_often) {
    std::map<std::vector<std::uint64_t>, int> times;
    int const trials = 24000;
    for (std::uint64_t key = 0; key < trials; ++key) {
        permutation const order(4, key);
        ++times[{order(0), order(1), order(2), order(3)}];
    }
    EXPECT_EQ(times.size(), 24u);
    double chi_square = 0;
    for (auto const& [order, n] : times) chi_square += (n - 1000.0) * (n - 1000.0) / 1000.0;
    EXPECT_LT(chi_square, 49.7) << "p < 0.001 with 23 degrees of freedom";
}

TEST(permutation, positions_and_samples_are_independent) {
    // Mean of (position - middle) * (sample - middle), in units of its standard deviation for a random order.
    std::uint64_t const size = 60000;
    permutation const order(size, 3);
    double sum = 0;
    double near = 0;
    double const middle = (static_cast<double>(size) - 1) / 2;
    for (std::uint64_t i = 0; i < size; ++i) {
        sum += (static_cast<double>(i) - middle) * (static_cast<double>(order(i)) - middle);
        if (i > 0 && order(i) == order(i - 1) + 1) ++near;
    }
    double const variance = static_cast<double>(size) * static_cast<double>(size) / 12;
    EXPECT_LT(std::abs(sum / (variance * std::sqrt(static_cast<double>(size)))), 4.0);
    EXPECT_LT(near, 8) << "about one neighbour stays a neighbour in a random order";
}

TEST(sampler, every_sample_exactly_once_for_any_world) {
    for (auto const spread : {spread_rule::global, spread_rule::sharded})
        for (bool const shuffle : {true, false})
            for (int const size : sizes)
                for (int const world : worlds) {
                    sampler const s(static_cast<std::size_t>(size), {.seed = 7, .shuffle = shuffle, .spread = spread});
                    for (std::uint64_t const epoch : {0u, 1u, 5u})
                        for (int const times : cover(s, epoch, world))
                            ASSERT_EQ(times, 1) << size << " samples, " << world << " ranks";
                }
}

TEST(sampler, the_order_does_not_depend_on_the_number_of_ranks) {
    sampler const s(1003, {.seed = 5});
    auto const alone = s.indices(3, 0, 1);
    for (int const world : {2, 3, 8}) {
        for (int rank = 0; rank < world; ++rank) {
            auto const part = s.indices(3, rank, world);
            for (std::size_t i = 0; i < part.size(); ++i)
                ASSERT_EQ(part[i], alone[static_cast<std::size_t>(rank) + i * static_cast<std::size_t>(world)]);
        }
    }
}

TEST(sampler, epochs_and_seeds_differ_and_repeat) {
    sampler const s(500, {.seed = 1});
    EXPECT_EQ(s.indices(0, 0, 1), sampler(500, {.seed = 1}).indices(0, 0, 1));
    EXPECT_NE(s.indices(0, 0, 1), s.indices(1, 0, 1));
    EXPECT_NE(s.indices(0, 0, 1), sampler(500, {.seed = 2}).indices(0, 0, 1));
    // Seeds and epochs next to each other must not give one another's orders.
    EXPECT_NE(s.indices(1, 0, 1), sampler(500, {.seed = 2}).indices(0, 0, 1));
    auto const plain = sampler(5, {.shuffle = false}).indices(9, 0, 1);
    EXPECT_EQ(plain, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(sampler, an_epoch_resumes_anywhere_with_any_number_of_ranks) {
    sampler const s(1000, {.seed = 11});
    auto const whole = s.indices(2, 0, 1);
    for (std::uint64_t const start : {0u, 1u, 63u, 999u, 1000u})
        for (int const world : {1, 2, 3, 7}) {
            auto const times = cover(s, 2, world, start);
            for (std::size_t position = 0; position < whole.size(); ++position)
                ASSERT_EQ(times[whole[position]], position < start ? 0 : 1) << "start " << start << ", " << world << " ranks";
        }
}

TEST(sampler, a_sharded_epoch_resumes_with_the_same_number_of_ranks) {
    sampler const s(103, {.seed = 11, .spread = spread_rule::sharded});
    for (int rank = 0; rank < 4; ++rank) {
        auto const whole = s.indices({0, rank, 4, 0});
        auto const rest = s.indices({0, rank, 4, 40});
        EXPECT_EQ(rest, std::vector<std::uint64_t>(whole.begin() + 10, whole.end()));
        EXPECT_TRUE(s.indices({0, rank, 4, 103}).empty());
        for (std::uint64_t const i : whole) {
            hyperslab const shard = shard_of(103, rank, 4);
            EXPECT_TRUE(i >= shard.first && i < shard.end());
        }
    }
    EXPECT_THROW(s.indices({0, 0, 4, 41}), error);
}

TEST(sampler, exact_tells_which_ranks_have_one_fewer) {
    for (auto const spread : {spread_rule::global, spread_rule::sharded})
        for (int const size : sizes)
            for (int const world : worlds) {
                sampler const s(static_cast<std::size_t>(size), {.spread = spread});
                rank_range const shorter = s.shorter_ranks(world);
                std::size_t const longest = s.count({0, 0, world, 0});
                for (int rank = 0; rank < world; ++rank) {
                    bool const told = rank >= shorter.first && rank < shorter.first + shorter.count;
                    ASSERT_EQ(s.count({0, rank, world, 0}), told ? longest - 1 : longest) << size << " " << world << " " << rank;
                }
            }
    EXPECT_EQ(sampler(10).shorter_ranks(4), (rank_range{2, 2}));
    EXPECT_EQ(sampler(10, {.tail = tail_rule::pad}).shorter_ranks(4).count, 0);
}

TEST(sampler, pad_and_drop_give_every_rank_as_many) {
    for (auto const spread : {spread_rule::global, spread_rule::sharded})
        for (int const size : sizes)
            for (int const world : worlds) {
                std::size_t const n = static_cast<std::size_t>(size);
                std::size_t const w = static_cast<std::size_t>(world);
                sampler const pad(n, {.tail = tail_rule::pad, .spread = spread});
                sampler const drop(n, {.tail = tail_rule::drop, .spread = spread});
                for (int rank = 0; rank < world; ++rank) {
                    ASSERT_EQ(pad.indices(0, rank, world).size(), (n + w - 1) / w);
                    ASSERT_EQ(drop.indices(0, rank, world).size(), n / w);
                }
                for (int const times : cover(pad, 0, world)) ASSERT_GE(times, 1);
                for (int const times : cover(drop, 0, world)) ASSERT_LE(times, 1);
            }
}

TEST(sampler, fills_any_part) {
    sampler const s(777, {.seed = 3});
    epoch_part const part{4, 1, 3, 30};
    auto const all = s.indices(part);
    std::vector<std::uint64_t> some(100);
    s.fill(part, 50, some);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 50));
    EXPECT_THROW(s.fill(part, all.size() - 99, some), error);
}

TEST(sampler, refuses_ranks_outside_their_world) {
    sampler const s(10);
    EXPECT_THROW(s.indices(0, 2, 2), error);
    EXPECT_THROW(s.indices(0, -1, 2), error);
    EXPECT_THROW(s.indices(0, 0, 0), error);
    EXPECT_THROW(s.indices({0, 0, 1, 11}), error);
}

}  // namespace
}  // namespace muster
