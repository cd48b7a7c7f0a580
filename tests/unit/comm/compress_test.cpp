#include "comm/tensor/compress.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "comm/tensor/half.hpp"

namespace muster {
namespace {

TEST(compress, rounds_and_widens_again_with_the_factor) {
    std::array<float, 3> const values{1.0f, 1.001f, -3.0f};
    std::array<std::uint16_t, 3> wire{};
    compress(compression::bf16, values, 2.0f, {}, wire.data(), best_simd());
    std::array<float, 3> back{};
    decompress(compression::bf16, wire.data(), back, 0.5f, best_simd());
    EXPECT_EQ(back, (std::array<float, 3>{1.0f, 1.0f, -3.0f}));
}

TEST(compress, what_rounding_loses_is_in_the_residual) {
    for (auto const how : {compression::f16, compression::bf16}) {
        std::vector<float> values(3000), residual(3000), back(3000), sum(3000);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + static_cast<float>(i) / 7000.0f;
        std::vector<std::uint16_t> wire(3000);
        for (int step = 0; step < 64; ++step) {
            compress(how, values, 1.0f, residual, wire.data(), best_simd());
            decompress(how, wire.data(), back, 1.0f, best_simd());
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += back[i];
        }
        // The sum of 64 steps is off by one rounding, not by 64.
        for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], 64 * values[i], 0.01f) << to_string(how) << " " << i;
    }
}

TEST(compress, beyond_the_type_there_is_no_residual) {
    std::array<float, 1> const values{1e6f};
    std::array<float, 1> residual{0.25f};
    std::uint16_t wire = 0;
    compress(compression::f16, values, 1.0f, residual, &wire, best_simd());
    float back = 0;
    decompress(compression::f16, &wire, std::span(&back, 1), 1.0f, best_simd());
    EXPECT_EQ(back, std::numeric_limits<float>::infinity());
    EXPECT_EQ(residual[0], 0.0f);
}

}  // namespace
}  // namespace muster
