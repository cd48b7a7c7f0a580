// Reductions of arrays at each level of vector instructions.
#include "comm/tensor/reduction_kernels.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace muster {
namespace {

class kernels : public testing::TestWithParam<simd> {
  protected:
    template <typename T>
    std::vector<T> combined(reduction how, std::vector<std::vector<T>> const& sources) {
        std::vector<void const*> pointers;
        for (auto const& source : sources) pointers.push_back(source.data());
        std::vector<T> out(sources.front().size());
        combine(dtype_of<T>(), how, pointers, out.data(), out.size(), GetParam());
        return out;
    }
};

INSTANTIATE_TEST_SUITE_P(levels, kernels, testing::ValuesIn(available_simd().begin(), available_simd().end()),
                         [](auto const& instance) { return std::string(to_string(instance.param)); });

TEST_P(kernels, sums_of_one_to_five_sources_at_lengths_around_blocks) {
    for (std::size_t const count : {1u, 7u, 16u, 1023u, 1024u, 1025u, 5000u})
        for (std::size_t sources = 1; sources <= 5; ++sources) {
            std::vector<std::vector<float>> in(sources, std::vector<float>(count));
            for (std::size_t s = 0; s < sources; ++s)
                for (std::size_t i = 0; i < count; ++i) in[s][i] = static_cast<float>(i % 100 + s);
            auto const out = combined<float>(reduction::sum, in);
            for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(out[i], static_cast<float>(sources * (i % 100) + sources * (sources - 1) / 2)) << i << " of " << count;
        }
}

/// Factors that are powers of two round nowhere: the result is known exactly.
template <typename T>
void expect_scaled(simd level) {
    for (std::size_t const count : {1u, 17u, 1025u})
        for (std::size_t sources = 1; sources <= 3; ++sources) {
            std::vector<std::vector<T>> in(sources, std::vector<T>(count));
            std::vector<void const*> pointers;
            for (std::size_t s = 0; s < sources; ++s) {
                for (std::size_t i = 0; i < count; ++i) in[s][i] = T(static_cast<float>(i % 16 + s));
                pointers.push_back(in[s].data());
            }
            std::vector<T> out(count);
            combine(dtype_of<T>(), reduction::sum, pointers, out.data(), count, level, {.before = 0.5, .after = 4});
            for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(static_cast<float>(out[i]), static_cast<float>(2 * (sources * (i % 16) + sources * (sources - 1) / 2)));
            combine(dtype_of<T>(), reduction::min, pointers, in[0].data(), count, level, {.before = -1, .after = 1});
            for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(static_cast<float>(in[0][i]), -static_cast<float>(i % 16 + sources - 1));
        }
}

TEST_P(kernels, factors_before_and_after) {
    expect_scaled<float>(GetParam());
    expect_scaled<double>(GetParam());
    expect_scaled<half>(GetParam());
    expect_scaled<bfloat16>(GetParam());
}

TEST_P(kernels, a_factor_before_keeps_a_sum_of_halves_finite) {
    auto const out = [&](scaling const& scale) {
        std::vector<half> const in(4, half(60000.0f));
        std::array<void const*, 2> const sources{in.data(), in.data()};
        std::vector<half> sum(4);
        combine(dtype::f16, reduction::sum, sources, sum.data(), 4, GetParam(), scale);
        return static_cast<float>(sum[0]);
    };
    EXPECT_TRUE(std::isinf(out({})));
    EXPECT_EQ(out({.before = 0.5}), 60000.0f);
}

TEST(multiply, scales_floating_types_and_copies_the_others) {
    std::vector<float> values{1, 2, 3};
    multiply(dtype::f32, values.data(), values.data(), 3, 2.0);
    EXPECT_EQ(values, (std::vector<float>{2, 4, 6}));
    std::vector<std::int8_t> const numbers{1, -2, 3};
    std::vector<std::int8_t> copy(3);
    multiply(dtype::i8, numbers.data(), copy.data(), 3, 1.0);
    EXPECT_EQ(copy, numbers);
}

TEST_P(kernels, integers_of_a_byte_wrap_around) {
    auto const sum = combined<std::int8_t>(reduction::sum, {{100, -100, 3}, {100, -100, 4}});
    EXPECT_EQ(sum, (std::vector<std::int8_t>{-56, 56, 7}));
    EXPECT_EQ(combined<std::int8_t>(reduction::min, {{-5, 7, 1}, {3, -9, 2}}), (std::vector<std::int8_t>{-5, -9, 1}));
}

TEST_P(kernels, the_result_may_replace_any_source) {
    for (std::size_t place = 0; place < 4; ++place) {
        std::vector<std::vector<double>> in;
        for (int s = 0; s < 4; ++s) in.emplace_back(3000, std::ldexp(1.0, s));
        std::array<void const*, 4> pointers{in[0].data(), in[1].data(), in[2].data(), in[3].data()};
        combine(dtype::f64, reduction::sum, pointers, in[place].data(), 3000, GetParam());
        EXPECT_EQ(in[place], std::vector<double>(3000, 15.0)) << place;
    }
}

TEST(kernels_to_many, the_result_goes_to_all_of_them_and_may_replace_the_sources) {
    std::vector<std::vector<float>> in;
    for (int s = 0; s < 3; ++s) in.emplace_back(3001, std::ldexp(1.0f, s));
    std::vector<float> other(3001);
    std::array<void const*, 3> const sources{in[0].data(), in[1].data(), in[2].data()};
    std::array<void*, 3> const outs{in[1].data(), other.data(), in[0].data()};
    combine(dtype::f32, reduction::sum, sources, std::span<void* const>(outs), 3001);
    for (auto const* each : {&in[0], &in[1], &other}) EXPECT_EQ(*each, std::vector<float>(3001, 7.0f));
    EXPECT_EQ(in[2], std::vector<float>(3001, 4.0f));
}

template <typename T>
void expect_nan_wins(auto const& combined) {
    T const nan(std::numeric_limits<float>::quiet_NaN());
    T const one(1.0f), two(2.0f);
    for (auto const how : {reduction::min, reduction::max}) {
        auto const out =
            combined(how, std::vector<std::vector<T>>{{nan, one, one, nan}, {one, nan, two, nan}, {two, two, one, nan}});
        EXPECT_TRUE(std::isnan(static_cast<float>(out[0])));
        EXPECT_TRUE(std::isnan(static_cast<float>(out[1])));
        EXPECT_EQ(static_cast<float>(out[2]), how == reduction::min ? 1.0f : 2.0f);
        EXPECT_TRUE(std::isnan(static_cast<float>(out[3])));
        auto const pair = combined(how, std::vector<std::vector<T>>{{nan, one}, {one, nan}});
        EXPECT_TRUE(std::isnan(static_cast<float>(pair[0])));
        EXPECT_TRUE(std::isnan(static_cast<float>(pair[1])));
    }
}

TEST_P(kernels, nan_wins_in_min_and_max) {
    expect_nan_wins<float>([&](auto how, auto const& in) { return combined<float>(how, in); });
    expect_nan_wins<double>([&](auto how, auto const& in) { return combined<double>(how, in); });
    expect_nan_wins<half>([&](auto how, auto const& in) { return combined<half>(how, in); });
    expect_nan_wins<bfloat16>([&](auto how, auto const& in) { return combined<bfloat16>(how, in); });
}

TEST_P(kernels, integers_wrap_around) {
    EXPECT_EQ(combined<std::uint8_t>(reduction::sum, {{200}, {100}}), (std::vector<std::uint8_t>{44}));
    EXPECT_EQ(combined<std::uint8_t>(reduction::product, {{20}, {20}}), (std::vector<std::uint8_t>{144}));
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    constexpr auto least = std::numeric_limits<std::int32_t>::min();
    EXPECT_EQ(combined<std::int32_t>(reduction::sum, {{most}, {1}}), (std::vector<std::int32_t>{least}));
    EXPECT_EQ(combined<std::int32_t>(reduction::product, {{most}, {2}}), (std::vector<std::int32_t>{-2}));
    constexpr auto large = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(combined<std::int64_t>(reduction::sum, {{large}, {1}}),
              (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()}));
    EXPECT_EQ(combined<std::int64_t>(reduction::min, {{-5, 3}, {4, -6}}), (std::vector<std::int64_t>{-5, -6}));
}

/// 2048 + 1 + 1 is 2050 in f16 only if nothing is rounded on the way: 2049 has no f16 and goes to the even 2048.
TEST_P(kernels, halves_are_rounded_once) {
    auto const f16 = combined<half>(reduction::sum, {{half(2048.0f)}, {half(1.0f)}, {half(1.0f)}});
    EXPECT_EQ(static_cast<float>(f16[0]), 2050.0f);
    auto const bf16 = combined<bfloat16>(reduction::sum, {{bfloat16(256.0f)}, {bfloat16(1.0f)}, {bfloat16(1.0f)}});
    EXPECT_EQ(static_cast<float>(bf16[0]), 258.0f);
}

/// The sum of two of the largest f16 has no f16; their average has.
TEST_P(kernels, averages_of_halves_do_not_overflow_on_the_way) {
    auto const out = combined<half>(reduction::average, {{half(65504.0f)}, {half(65504.0f)}});
    EXPECT_EQ(static_cast<float>(out[0]), 65504.0f);
}

TEST_P(kernels, averages_are_divided_and_not_multiplied_by_a_rounded_inverse) {
    EXPECT_EQ(combined<float>(reduction::average, {{1, 10}, {2, 10}, {7, 1}})[0], 10.0f / 3);
    EXPECT_EQ(combined<double>(reduction::average, {{1}, {2}, {7}})[0], 10.0 / 3);
    EXPECT_EQ(combined<double>(reduction::average, {{1}, {2}})[0], 1.5);
}

TEST(divide, every_floating_type) {
    std::vector<float> f(1500, 9);
    divide(dtype::f32, f.data(), f.size(), 3);
    EXPECT_EQ(f, std::vector<float>(1500, 3));
    std::vector<double> d(3, 9);
    divide(dtype::f64, d.data(), d.size(), 2);
    EXPECT_EQ(d, std::vector<double>(3, 4.5));
    std::vector<half> h(1500, half(9.0f));
    divide(dtype::f16, h.data(), h.size(), 2);
    EXPECT_EQ(h, std::vector<half>(1500, half(4.5f)));
    std::vector<bfloat16> b(1500, bfloat16(9.0f));
    divide(dtype::bf16, b.data(), b.size(), 2);
    EXPECT_EQ(b, std::vector<bfloat16>(1500, bfloat16(4.5f)));
}

TEST(tensor, sizes_and_names) {
    EXPECT_EQ(size_of(dtype::f64), 8u);
    EXPECT_EQ(size_of(dtype::bf16), 2u);
    EXPECT_EQ(size_of(dtype::u8), 1u);
    EXPECT_EQ(to_string(dtype::bf16), "bf16");
    EXPECT_EQ(to_string(reduction::average), "average");
    std::vector<half> values(5);
    EXPECT_EQ(view_of(std::span(values)), (tensor_view{values.data(), 5, dtype::f16, memory_kind::host}));
    EXPECT_EQ(view_of(std::span(values)).bytes(), 10u);
}

}  // namespace
}  // namespace muster
