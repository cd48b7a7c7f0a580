// Adasum on any number of ranks, against a sequential computation in double and by its own laws.
// ranks: 1 2 3 4 5 8
#include "comm/gradients/adasum.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "mpi_test.hpp"
#include "reduction_oracle.hpp"

namespace muster::test {

namespace {

using testing::HasSubstr;
using vector = std::vector<double>;

vector pair_of(vector const& a, vector const& b) {
    double const ab = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    double const aa = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
    double const bb = std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
    vector result(a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        result[i] = (aa == 0 ? 1 : 1 - ab / (2 * aa)) * a[i] + (bb == 0 ? 1 : 1 - ab / (2 * bb)) * b[i];
    return result;
}

vector tree(std::vector<vector> const& g) {
    if (g.size() == 1) return g.front();
    auto const half = g.begin() + static_cast<std::ptrdiff_t>(g.size() / 2);
    return pair_of(tree({g.begin(), half}), tree({half, g.end()}));
}

/// The definition, written as it stands.
vector oracle(std::vector<vector> g) {
    std::size_t const power = std::bit_floor(g.size());
    for (std::size_t r = power; r < g.size(); ++r) g[r - power] = pair_of(g[r - power], g[r]);
    g.resize(power);
    return tree(g);
}

template <typename T>
double number(T value) {
    return static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
}

/// What rank `rank` gives, as T holds it: noise around something that all share, so that the weights matter.
template <typename T>
std::vector<T> gradient(std::size_t count, int rank, unsigned seed = 0) {
    std::mt19937 random(static_cast<unsigned>(rank) * 77 + seed);
    std::normal_distribution<double> normal(0.0, 0.5);
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = as<T>(std::cos(static_cast<double>(i)) + normal(random));
    return values;
}

template <typename T>
vector widened(std::vector<T> const& values) {
    vector result;
    for (T const value : values) result.push_back(number(value));
    return result;
}

/// Relative to the largest element.
template <typename T>
double tolerance() {
    if constexpr (std::is_same_v<T, double>) return 1e-13;
    if constexpr (std::is_same_v<T, float>) return 1e-6;
    return std::is_same_v<T, half> ? std::ldexp(1.0, -10) : std::ldexp(1.0, -7);
}

template <typename T>
void expect_near(std::vector<T> const& got, vector const& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    double most = 0;
    for (double const value : wanted) most = std::max(most, std::abs(value));
    for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(number(got[i]), wanted[i], tolerance<T>() * most) << i << " of " << got.size();
}

template <typename T>
void expect_same_on_all(std::vector<T> const& got) {
    auto of_rank_0 = got;
    ranks().broadcast("rank 0's", view_of(std::span(of_rank_0)), 0).wait();
    EXPECT_EQ(std::memcmp(got.data(), of_rank_0.data(), got.size() * sizeof(T)), 0);
}

template <typename T>
class adasum_of : public testing::Test {};
using types = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(adasum_of, types);

TYPED_TEST(adasum_of, one_tensor_is_the_oracle_s) {
    using T = TypeParam;
    for (std::size_t const count : {1u, 2u, 5u, 64u, 1001u, 60000u}) {
        std::vector<vector> all;
        for (int rank = 0; rank < ranks().size(); ++rank) all.push_back(widened(gradient<T>(count, rank)));
        auto const in = gradient<T>(count, ranks().rank());
        std::vector<T> out(count);
        adasum(ranks(), "g", input_of(std::span(in)), view_of(std::span(out)));
        expect_near(out, oracle(all));
        expect_same_on_all(out);
        auto in_place = in;
        adasum(ranks(), "g", view_of(std::span(in_place)), view_of(std::span(in_place)));
        EXPECT_EQ(std::memcmp(in_place.data(), out.data(), count * sizeof(T)), 0);
    }
}

/// Layers are weighed each for itself, wherever the halves of the whole are cut.
TYPED_TEST(adasum_of, layers_are_as_tensors_of_their_own) {
    using T = TypeParam;
    std::vector<std::size_t> const layers{7, 0, 1000, 1, 333, 64, 0};
    std::size_t const count = std::accumulate(layers.begin(), layers.end(), std::size_t{0});
    std::vector<std::vector<T>> given;
    for (int rank = 0; rank < ranks().size(); ++rank) given.push_back(gradient<T>(count, rank, 5));
    std::vector<T> out(count);
    auto& own = given[static_cast<std::size_t>(ranks().rank())];
    adasum(ranks(), "g", view_of(std::span(own)), view_of(std::span(out)), layers);
    for (std::size_t first = 0; auto const layer : layers) {
        std::vector<vector> all;
        auto const cut = [&](std::vector<T> const& from) {
            auto const begin = from.begin() + static_cast<std::ptrdiff_t>(first);
            return std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(layer));
        };
        for (auto const& each : given) all.push_back(widened(cut(each)));
        if (layer != 0) expect_near(cut(out), oracle(all));
        first += layer;
    }
    expect_same_on_all(out);
}

vector adasum_f64(vector in) {
    adasum(ranks(), "g", view_of(std::span(in)), view_of(std::span(in)));
    return in;
}

TEST(adasum_law, orthogonal_gradients_are_added) {
    vector mine(16, 0.0), sum(16, 0.0);
    mine[static_cast<std::size_t>(ranks().rank())] = 3.0 + ranks().rank();
    for (int rank = 0; rank < ranks().size(); ++rank) sum[static_cast<std::size_t>(rank)] = 3.0 + rank;
    EXPECT_EQ(adasum_f64(mine), sum);
}

TEST(adasum_law, equal_gradients_count_once) {
    vector const same{1.0, -2.0, 0.5, 4.0, 8.0};
    auto const result = adasum_f64(same);
    for (std::size_t i = 0; i < same.size(); ++i) EXPECT_NEAR(result[i], same[i], 1e-14 * 8);
}

TEST(adasum_law, opposite_gradients_cancel) {
    if (std::popcount(static_cast<unsigned>(ranks().size())) != 1) GTEST_SKIP() << "the pairs are those of a power of two";
    double const sign = ranks().size() > 1 && ranks().rank() % 2 == 1 ? -1 : 1;
    auto const result = adasum_f64({sign * 2, sign * 3});
    EXPECT_EQ(result, ranks().size() == 1 ? (vector{2, 3}) : (vector{0, 0}));
}

TEST(adasum_law, parallel_gradients_give_the_mean_of_two) {
    // A(a, c a) = (1 - c/2) a + (1 - 1/(2c)) c a = (1 + c)/2 a
    if (ranks().size() != 2) GTEST_SKIP() << "of two";
    double const factor = ranks().rank() == 0 ? 1 : 3;
    auto const result = adasum_f64({factor * 1, factor * -4});
    EXPECT_NEAR(result[0], 2.0, 1e-14);
    EXPECT_NEAR(result[1], -8.0, 1e-14);
}

TEST(adasum_law, zeros_leave_the_others_alone) {
    vector const zero(9, 0.0);
    EXPECT_EQ(adasum_f64(zero), zero);
    vector const given{1, 2, 3, 4, 5, 6, 7, 8, 9};
    int const last = ranks().size() - 1;
    EXPECT_EQ(adasum_f64(ranks().rank() == last ? given : zero), given);
}

TEST(adasum_law, it_scales_with_its_input) {
    auto const in = gradient<double>(100, ranks().rank(), 9);
    auto doubled = in;
    for (auto& value : doubled) value *= 2;
    auto const once = adasum_f64(in), twice = adasum_f64(doubled);
    for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(2 * once[i], twice[i]);
}

TEST(adasum_law, two_ranks_may_change_places) {
    if (ranks().size() != 2) GTEST_SKIP() << "of more, the order counts";
    auto const straight = adasum_f64(gradient<double>(100, ranks().rank(), 3));
    auto const turned = adasum_f64(gradient<double>(100, 1 - ranks().rank(), 3));
    for (std::size_t i = 0; i < straight.size(); ++i) EXPECT_NEAR(straight[i], turned[i], 1e-14);
}

TEST(adasum_use, wrong_arguments_are_told) {
    auto const message_of = [](auto&& body) -> std::string {
        try {
            body();
        } catch (comm_error const& problem) {
            EXPECT_EQ(problem.code(), errc::usage);
            return problem.what();
        }
        return "nothing was thrown";
    };
    std::vector<std::int32_t> numbers(4);
    vector values(4);
    auto const of_numbers = view_of(std::span(numbers)), of_values = view_of(std::span(values));
    EXPECT_THAT(message_of([&] { adasum(ranks(), "w", of_numbers, of_numbers); }), HasSubstr("i32 has no fractions"));
    EXPECT_THAT(message_of([&] {
                    adasum(ranks(), "w", of_values, of_values, std::vector<std::size_t>{1, 2});
                }),
                HasSubstr("adasum of \"w\" (rank " + std::to_string(ranks().rank())));
    EXPECT_THAT(message_of([&] {
                    adasum(ranks(), "w", of_values, of_values, std::vector<std::size_t>{3, 2});
                }),
                HasSubstr("more elements than the 4"));
    adasum(ranks(), "nothing", {}, {});
}

}  // namespace

}  // namespace muster::test
