// Allreduces in half the bytes: how far they are from the truth, at once and in the long run.
// ranks: 1 2 3 4
#include "comm/gradients/compressed_allreduce.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "mpi_test.hpp"

namespace muster::test {

namespace {

using testing::HasSubstr;

/// Half a unit in the last place, relative.
double rounding(compression wire) {
    return wire == compression::f16 ? std::ldexp(1.0, -11) : std::ldexp(1.0, -8);
}

std::vector<float> noise(std::size_t count, int rank, unsigned seed = 0) {
    std::mt19937 random(static_cast<unsigned>(rank) * 1000 + seed);
    std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
    std::vector<float> values(count);
    for (auto& value : values) value = uniform(random);
    return values;
}

std::vector<double> exact_sum(std::size_t count, int ranks) {
    std::vector<double> sum(count);
    for (int rank = 0; rank < ranks; ++rank) {
        auto const values = noise(count, rank);
        for (std::size_t i = 0; i < count; ++i) sum[i] += static_cast<double>(values[i]);
    }
    return sum;
}

class compressed : public testing::TestWithParam<compression> {};
INSTANTIATE_TEST_SUITE_P(wires, compressed, testing::Values(compression::f16, compression::bf16),
                         [](auto const& instance) { return std::string(to_string(instance.param)); });

TEST_P(compressed, sums_are_two_roundings_from_the_truth_and_the_same_on_all_ranks) {
    auto& all = ranks();
    compressed_allreduce reducer(all, GetParam());
    for (std::size_t const count : {0u, 1u, 3u, 1023u, 5000u, 2500000u}) {
        auto const in = noise(count, all.rank());
        auto const expected = exact_sum(count, all.size());
        std::vector<float> out(count, -1.0f);
        reducer.run("x", input_of(std::span(in)), view_of(std::span(out)), reduction::sum);
        for (std::size_t i = 0; i < count; ++i)
            ASSERT_NEAR(out[i], expected[i], 2.1 * rounding(GetParam()) * expected[i]) << i << " of " << count;
        auto of_rank_0 = out;
        all.broadcast("rank 0's", view_of(std::span(of_rank_0)), 0).wait();
        EXPECT_TRUE(count == 0 || std::memcmp(out.data(), of_rank_0.data(), count * sizeof(float)) == 0);
        auto in_place = in;
        reducer.run("x", view_of(std::span(in_place)), view_of(std::span(in_place)), reduction::sum);
        EXPECT_EQ(in_place, out);
    }
}

TEST_P(compressed, what_needs_no_rounding_is_exact_in_every_reduction) {
    auto& all = ranks();
    compressed_allreduce reducer(all, GetParam());
    std::vector<float> in(3000), out(3000);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>((i + static_cast<std::size_t>(all.rank())) % 4 + 1);
    for (auto const how : {reduction::sum, reduction::min, reduction::max, reduction::product}) {
        std::vector<float> exact(in.size());
        scaling const scale{.before = 0.5, .after = 2};
        all.allreduce("exact", view_of(std::span(in)), view_of(std::span(exact)), how, scale).wait();
        reducer.run("x", view_of(std::span(in)), view_of(std::span(out)), how, scale);
        EXPECT_EQ(out, exact) << to_string(how);
    }
}

/// Steps of one gradient that the wire cannot hold. Rounded anew each time, the mean is as wrong as the first step; with feedback
/// the error of the sum is that of one step.
TEST_P(compressed, error_feedback_makes_the_mean_right_and_plain_rounding_does_not) {
    auto& all = ranks();
    if (all.size() == 1) GTEST_SKIP() << "alone, nothing is rounded";
    double const unit = rounding(GetParam());
    std::size_t const count = 1000;
    int const steps = 400;
    // A quarter of a unit above 1 (and as much more for every rank): always rounded down.
    std::vector<float> const gradient(count, static_cast<float>(1 + unit * (0.5 + 0.1 * all.rank())));
    double truth = 0;
    for (int rank = 0; rank < all.size(); ++rank) truth += static_cast<double>(static_cast<float>(1 + unit * (0.5 + 0.1 * rank)));
    truth /= all.size();
    auto const mean_of = [&](bool feedback) {
        compressed_allreduce reducer(all, GetParam(), feedback);
        std::vector<float> out(count);
        double sum = 0;
        for (int step = 0; step < steps; ++step) {
            reducer.run("g", input_of(std::span(gradient)), view_of(std::span(out)), reduction::average);
            sum += static_cast<double>(out[count / 2]);
        }
        return sum / steps;
    };
    EXPECT_NEAR(mean_of(true), truth, 4 * unit / steps + 1e-6);
    EXPECT_GT(std::abs(mean_of(false) - truth), 0.4 * unit);
}

TEST_P(compressed, error_feedback_forgets_what_was_not_finite) {
    auto& all = ranks();
    if (all.size() == 1) GTEST_SKIP() << "alone, nothing is rounded";
    compressed_allreduce reducer(all, GetParam(), true);
    std::vector<float> in(8, 1.0f), out(8);
    in[3] = std::numeric_limits<float>::infinity();
    in[4] = std::numeric_limits<float>::quiet_NaN();
    in[5] = 3e38f;
    reducer.run("g", view_of(std::span(in)), view_of(std::span(out)), reduction::sum);
    EXPECT_TRUE(std::isinf(out[3]));
    EXPECT_TRUE(std::isnan(out[4]));
    std::fill(in.begin(), in.end(), 1.0f);
    reducer.run("g", view_of(std::span(in)), view_of(std::span(out)), reduction::sum);
    for (std::size_t const i : {3u, 4u}) EXPECT_EQ(out[i], static_cast<float>(all.size()));
}

TEST(compression, wrong_use_is_told) {
    auto& all = ranks();
    if (all.size() == 1) GTEST_SKIP() << "alone, nothing is compressed";
    auto const message_of = [&](compressed_allreduce& reducer, tensor_view const& view, reduction how) -> std::string {
        try {
            reducer.run("conv1", view, view, how);
        } catch (comm_error const& problem) {
            EXPECT_EQ(problem.code(), errc::usage);
            return problem.what();
        }
        return "nothing was thrown";
    };
    compressed_allreduce plain(all, compression::bf16), fed_back(all, compression::bf16, true);
    std::vector<double> doubles(4);
    std::vector<float> floats(4);
    EXPECT_THAT(message_of(plain, view_of(std::span(doubles)), reduction::sum), HasSubstr("this one is f64 in host memory"));
    EXPECT_THAT(message_of(fed_back, view_of(std::span(floats)), reduction::max), HasSubstr("not for max"));
    fed_back.run("conv1", view_of(std::span(floats)), view_of(std::span(floats)), reduction::sum);
    auto const shorter = view_of(std::span(floats).first(3));
    EXPECT_THAT(message_of(fed_back, shorter, reduction::sum), HasSubstr("it has 3 elements and had 4 before"));
    fed_back.forget("conv1");
    fed_back.run("conv1", shorter, shorter, reduction::sum);
}

TEST(compression, none_is_an_allreduce) {
    auto& all = ranks();
    compressed_allreduce reducer(all, compression::none);
    auto const in = noise(1000, all.rank());
    std::vector<float> out(1000), exact(1000);
    reducer.run("x", input_of(std::span(in)), view_of(std::span(out)), reduction::sum);
    all.allreduce("x", input_of(std::span(in)), view_of(std::span(exact)), reduction::sum).wait();
    EXPECT_EQ(out, exact);
}

}  // namespace

}  // namespace muster::test
