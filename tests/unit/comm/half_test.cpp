// half and bfloat16 over all their values, against arithmetic in double and against the processor's own conversions.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "comm/tensor/half.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster {
namespace {

struct half_format {
    using type = half;
    static constexpr int mantissa_bits = 10;
    static constexpr int least_exponent = -14;  // of normal numbers
    static constexpr int exponents = 31;        // biased, that of infinity
};
struct bfloat16_format {
    using type = bfloat16;
    static constexpr int mantissa_bits = 7;
    static constexpr int least_exponent = -126;
    static constexpr int exponents = 255;
};

template <typename Format>
bool is_nan_pattern(std::uint16_t bits) {
    int const exponent = (bits & 0x7fff) >> Format::mantissa_bits;
    return exponent == Format::exponents && (bits & ((1 << Format::mantissa_bits) - 1)) != 0;
}

/// The value by the definition of the format.
template <typename Format>
double defined_value(std::uint16_t bits) {
    int const exponent = (bits & 0x7fff) >> Format::mantissa_bits;
    int const mantissa = bits & ((1 << Format::mantissa_bits) - 1);
    double const sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == Format::exponents) return sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(mantissa, Format::least_exponent - Format::mantissa_bits);
    return sign *
           std::ldexp(mantissa + (1 << Format::mantissa_bits), exponent - 1 + Format::least_exponent - Format::mantissa_bits);
}

template <typename Format>
class formats : public testing::Test {};
using all_formats = testing::Types<half_format, bfloat16_format>;
TYPED_TEST_SUITE(formats, all_formats);

TYPED_TEST(formats, every_value_converts_exactly_and_back) {
    using type = typename TypeParam::type;
    for (std::uint32_t i = 0; i < 65536; ++i) {
        auto const bits = static_cast<std::uint16_t>(i);
        auto const value = static_cast<float>(type::from_bits(bits));
        if (is_nan_pattern<TypeParam>(bits)) {
            EXPECT_TRUE(std::isnan(value)) << i;
            EXPECT_TRUE(is_nan_pattern<TypeParam>(type(value).bits())) << i;
            continue;
        }
        ASSERT_EQ(static_cast<double>(value), defined_value<TypeParam>(bits)) << i;
        ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << i;
        ASSERT_EQ(type(value).bits(), bits) << i;
    }
}

/// Around each middle between neighbours: the middle goes to the even one, what is next to it to the nearer one.
TYPED_TEST(formats, rounding_is_to_the_nearest_and_ties_to_even) {
    using type = typename TypeParam::type;
    std::uint16_t const infinity = static_cast<std::uint16_t>(TypeParam::exponents << TypeParam::mantissa_bits);
    for (std::uint16_t low = 0; low < infinity; ++low) {
        auto const high = static_cast<std::uint16_t>(low + 1);
        double const below = defined_value<TypeParam>(low);
        // Beyond the largest number the spacing goes on, and the middle belongs to infinity.
        double const above = high == infinity ? 2 * below - defined_value<TypeParam>(static_cast<std::uint16_t>(low - 1))
                                              : defined_value<TypeParam>(high);
        auto const middle = static_cast<float>((below + above) / 2);
        ASSERT_EQ(static_cast<double>(middle), (below + above) / 2) << low;
        std::uint16_t const even = low % 2 == 0 ? low : high;
        ASSERT_EQ(type(middle).bits(), even) << low;
        ASSERT_EQ(type(-middle).bits(), even | 0x8000) << low;
        ASSERT_EQ(type(std::nextafter(middle, 0.0f)).bits(), low) << low;
        ASSERT_EQ(type(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits(), high) << low;
    }
}

TYPED_TEST(formats, too_large_is_infinity_and_too_small_is_zero_of_the_same_sign) {
    using type = typename TypeParam::type;
    EXPECT_EQ(static_cast<float>(type(std::numeric_limits<float>::infinity())), std::numeric_limits<float>::infinity());
    EXPECT_EQ(static_cast<float>(type(-std::numeric_limits<float>::max())), -std::numeric_limits<float>::infinity());
    EXPECT_EQ(type(-0.0f).bits(), 0x8000);
    EXPECT_EQ(type(0.0f).bits(), 0);
    EXPECT_EQ(type(0.0f), type(-0.0f));
    EXPECT_FALSE(type(std::nanf("")) == type(std::nanf("")));
}

TEST(half, limits) {
    EXPECT_EQ(half(65504.0f).bits(), 0x7bff);
    EXPECT_EQ(half(65519.996f).bits(), 0x7bff);
    EXPECT_EQ(half(65520.0f).bits(), 0x7c00);
    EXPECT_EQ(half(5.9604645e-8f).bits(), 0x0001);
    EXPECT_EQ(half(2.9802322e-8f).bits(), 0x0000);  // half of the least: a tie, to even
    static_assert(half(1.5f).bits() == 0x3e00);
    static_assert(bfloat16(1.5f).bits() == 0x3fc0);
}

/// Arrays at each level of vector instructions, F16C among them: bit for bit the value types, NaN included.
class conversions : public testing::TestWithParam<simd> {};

template <typename T>
void expect_all_read_alike(simd level) {
    std::vector<T> all;
    for (std::uint32_t i = 0; i < 65536; ++i) all.push_back(T::from_bits(static_cast<std::uint16_t>(i)));
    all.push_back(T(1.0f));  // a rest that fills no vector
    std::vector<float> converted(all.size());
    to_float(all.data(), converted.data(), all.size(), level);
    for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(converted[i]), std::bit_cast<std::uint32_t>(static_cast<float>(all[i]))) << i;
}

template <typename T>
void expect_alike(std::vector<float> const& values, simd level) {
    std::vector<T> converted(values.size());
    from_float(values.data(), converted.data(), values.size(), level);
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(converted[i].bits(), T(values[i]).bits()) << std::hexfloat << values[i] << " at " << i;
}

TEST_P(conversions, reading) {
    expect_all_read_alike<half>(GetParam());
    expect_all_read_alike<bfloat16>(GetParam());
}

/// Every upper half of a float with lower halves at and around all that rounding looks at, and random ones.
TEST_P(conversions, writing) {
    std::mt19937 random(7);
    for (std::uint32_t const low :
         {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu, 0x2000u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xf000u, 0xffffu}) {
        std::vector<float> values;
        for (std::uint32_t high = 0; high < 65536; ++high) values.push_back(std::bit_cast<float>(high << 16 | low));
        expect_alike<half>(values, GetParam());
        expect_alike<bfloat16>(values, GetParam());
    }
    std::vector<float> values(100003);
    for (auto& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    expect_alike<half>(values, GetParam());
    expect_alike<bfloat16>(values, GetParam());
}

INSTANTIATE_TEST_SUITE_P(levels, conversions, testing::ValuesIn(available_simd().begin(), available_simd().end()),
                         [](auto const& instance) { return std::string(to_string(instance.param)); });

}  // namespace
}  // namespace muster
