#include "io/loader/windowed_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "io/loader/sampler.hpp"

namespace muster {
namespace {

std::vector<std::uint64_t> all_of(windowed_order const& order) {
    std::vector<std::uint64_t> samples(order.size());
    order.fill(0, 1, samples);
    return samples;
}

TEST(windowed_order, is_a_bijection_that_mixes_only_the_chunks_of_a_window) {
    for (std::uint64_t const size : {1u, 9u, 10u, 11u, 99u, 100u, 101u, 1003u})
        for (shuffle_window const window :
             {shuffle_window{10, 3}, shuffle_window{1, 1}, shuffle_window{7, 100}, shuffle_window{5000, 1}})
            for (std::uint64_t key = 0; key < 12; ++key) {
                windowed_order const order(size, key, window);
                auto const samples = all_of(order);
                std::vector<bool> seen(size);
                for (std::uint64_t position = 0; position < size; ++position) {
                    std::uint64_t const sample = samples[position];
                    ASSERT_LT(sample, size);
                    ASSERT_FALSE(seen[sample]);
                    seen[sample] = true;
                    std::uint64_t const w = order.window_of(position);
                    hyperslab const places = order.places_of(w);
                    bool in_window = false;
                    for (std::size_t place = places.first; place < places.end(); ++place)
                        in_window = in_window || order.chunk_at(place) == sample / window.chunk_samples;
                    ASSERT_TRUE(in_window) << "size " << size << ", position " << position;
                }
            }
}

TEST(windowed_order, any_part_is_the_same_as_the_whole) {
    windowed_order const order(1003, 5, {10, 8});
    auto const whole = all_of(order);
    for (std::uint64_t const step : {1u, 3u, 250u})
        for (std::uint64_t const first : {0u, 1u, 400u, 1000u}) {
            std::vector<std::uint64_t> part((1003 - first - 1) / step + 1);
            order.fill(first, step, part);
            for (std::size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], whole[first + i * step]);
        }
}

TEST(windowed_order, without_shuffle_is_the_order_of_the_file) {
    windowed_order const order(25, 5, {10, 2}, false);
    auto const samples = all_of(order);
    for (std::uint64_t i = 0; i < 25; ++i) EXPECT_EQ(samples[i], i);
    EXPECT_EQ(order.window_of(19), 0u);
    EXPECT_EQ(order.window_of(20), 1u);
}

/// Shared by the shuffles with and without a window: how random their orders are.
struct quality {
    double chi_square =
        0;  ///< of (sixteenth of the positions, sixteenth of the samples) over many epochs; 225 degrees of freedom
    double neighbours = 0;   ///< an epoch: how often sample i+1 follows sample i
    double correlation = 0;  ///< of one sample with the next, over an epoch
};
quality quality_of(shuffle_window window) {
    constexpr std::size_t size = 6400, cells = 16, epochs = 64;
    sampler const by(size, {.seed = 3, .window = window});
    std::vector<double> times(cells * cells, 0);
    quality found;
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        auto const samples = by.indices(epoch, 0, 1);
        double products = 0;
        for (std::size_t i = 0; i < size; ++i) {
            ++times[i * cells / size * cells + samples[i] * cells / size];
            if (i + 1 == size) break;
            if (samples[i + 1] == samples[i] + 1) found.neighbours += 1.0 / epochs;
            double const middle = (size - 1) / 2.0;
            products += (static_cast<double>(samples[i]) - middle) * (static_cast<double>(samples[i + 1]) - middle);
        }
        found.correlation += products / (static_cast<double>(size) * size / 12 * size) / epochs;
    }
    double const expected = static_cast<double>(size) * epochs / (cells * cells);
    for (double const n : times) found.chi_square += (n - expected) * (n - expected) / expected;
    return found;
}

// 295 is exceeded by chance once in a thousand.
TEST(shuffle_quality, without_a_window_positions_and_samples_are_independent) {
    quality const found = quality_of({});
    EXPECT_LT(found.chi_square, 295);
    EXPECT_LT(found.neighbours, 1.6) << "one is expected";
    EXPECT_LT(std::abs(found.correlation), 0.006) << "four standard deviations";
}

// What a window costs: samples of a window stay together. Over the epochs every sample comes everywhere, but a chunk's samples come
// together, so the statistic grows by up to the samples that move as one; its neighbours are as rare as 1 in the window's chunks.
TEST(shuffle_quality, with_a_window_samples_still_come_everywhere) {
    quality const found = quality_of({20, 32});  // ten windows
    EXPECT_LT(found.chi_square, 295.0 * 20);
    EXPECT_GT(found.chi_square, 295.0) << "if a window costs nothing docs/datasets.md is wrong";
    EXPECT_LT(found.neighbours, 12) << "ten windows, about one each";
    EXPECT_LT(std::abs(found.correlation), 0.1);
}

TEST(shuffle_quality, unshuffled_samples_are_seen_to_be) {
    sampler const by(1000, {.shuffle = false});
    auto const samples = by.indices(0, 0, 1);
    EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end()));
    quality const bad = quality_of({6400, 1});  // one window of all: as good as none
    EXPECT_LT(bad.chi_square, 295);
}

TEST(windowed_sampler, covers_every_sample_once_for_any_world_and_resumes_anywhere) {
    for (int const size : {1, 19, 20, 21, 1003})
        for (int const world : {1, 2, 3, 8, 100}) {
            sampler const by(static_cast<std::size_t>(size), {.seed = 4, .window = {10, 2}});
            auto const alone = by.indices(2, 0, 1);
            for (std::uint64_t const start : {0, size / 3, size}) {
                std::vector<int> times(static_cast<std::size_t>(size), 0);
                for (int rank = 0; rank < world; ++rank)
                    for (std::uint64_t const i : by.indices({2, rank, world, start})) ++times.at(i);
                for (std::size_t position = 0; position < alone.size(); ++position)
                    ASSERT_EQ(times[alone[position]], position < start ? 0 : 1);
            }
        }
}

TEST(windowed_sampler, refuses_half_a_window_and_bounds_a_huge_one) {
    EXPECT_THROW(sampler(10, {.window = {0, 3}}), error);
    EXPECT_THROW(sampler(10, {.window = {3, 0}}), error);
    sampler const by(10, {.window = {SIZE_MAX, SIZE_MAX}});
    auto seen = by.indices(0, 0, 1);
    std::sort(seen.begin(), seen.end());
    for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(seen[i], i);
}

TEST(window_for, is_none_for_sets_that_are_shuffled_whole) {
    EXPECT_FALSE(window_for(60000, 784));
    EXPECT_FALSE(window_for((std::uint64_t{4} << 30) / 1024, 1024));
    EXPECT_EQ(window_for((std::uint64_t{4} << 30) / 1024 + 1, 1024), (shuffle_window{4096, 64}));
    EXPECT_EQ(window_for((std::uint64_t{4} << 30) / 1024 + 1, 1024, 1000), (shuffle_window{4000, 64}))
        << "whole chunks of the file";
    EXPECT_EQ(window_for((std::uint64_t{4} << 30) / 1024 + 1, 1024, 5000), (shuffle_window{5000, 64}));
    EXPECT_EQ(window_for(std::uint64_t{1} << 20, 100 << 20), (shuffle_window{1, 64})) << "samples larger than a chunk";
}

}  // namespace
}  // namespace muster
