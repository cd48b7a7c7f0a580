// Every kernel of every instruction set this processor has, against plain loops in double precision.
#include "bench/network/choose_kernels.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "bench/tools/random.hpp"

namespace muster {
namespace {

std::vector<float> noise(std::size_t count, std::uint64_t purpose) {
    random_stream const stream(11, purpose);
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = stream.uniform(i) - 0.5f;
    return out;
}

class kernels : public testing::TestWithParam<kernel_choice> {
  protected:
    void SetUp() override {
        if (!GetParam().supported) GTEST_SKIP() << "this processor has no " << GetParam().name;
    }
    kernel_table const& k() const { return *GetParam().kernels; }
};

convolution_shape const conv1{1, 32, 32 * 28, 10, 24, 24, 16, 192};
convolution_shape const conv2{10, 16, 192, 20, 8, 8, 4, 16};

double window_sum(convolution_shape const& s, std::vector<float> const& image, std::vector<float> const& weights, int channel,
                  int y, int x) {
    double sum = 0;
    for (int i = 0; i < s.in_channels; ++i) {
        for (int ky = 0; ky < 5; ++ky) {
            for (int kx = 0; kx < 5; ++kx)
                sum += double{image[i * s.in_plane + (y + ky) * s.in_row + x + kx]} *
                       weights[(channel * s.in_channels + i) * 25 + ky * 5 + kx];
        }
    }
    return sum;
}

void check_forward(kernel_table const& k, convolution_shape const& s, std::vector<std::uint16_t> const& channels, float scale) {
    auto const image = noise(static_cast<std::size_t>(s.in_channels * s.in_plane), 1);
    auto const weights = noise(static_cast<std::size_t>(s.out_channels * s.in_channels * 25), 2);
    auto const bias = noise(static_cast<std::size_t>(s.out_channels), 3);
    float const untouched = -7;
    int const pixels = s.height / 2 * s.width / 2;
    std::vector<float> out(static_cast<std::size_t>(s.out_channels * s.out_plane), untouched);
    std::vector<std::uint8_t> winners(static_cast<std::size_t>(s.out_channels * pixels), 99);
    k.convolution_forward(s, image.data(), weights.data(), bias.data(), channels.data(), static_cast<int>(channels.size()), scale,
                          out.data(), winners.data());
    for (int c = 0; c < s.out_channels; ++c) {
        bool const listed = std::find(channels.begin(), channels.end(), c) != channels.end();
        for (int y = 0; y < s.height / 2; ++y) {
            for (int x = 0; x < s.width / 2; ++x) {
                float const got = out[c * s.out_plane + y * s.out_row + x];
                int const winner = winners[c * pixels + y * (s.width / 2) + x];
                if (!listed) {
                    ASSERT_EQ(got, untouched);
                    ASSERT_EQ(winner, 99);
                    continue;
                }
                double best = -1e30, second = -1e30;
                int code = 0;
                for (int i = 0; i < 4; ++i) {
                    double const value = window_sum(s, image, weights, c, 2 * y + i / 2, 2 * x + i % 2);
                    if (value > best) {
                        second = best;
                        best = value;
                        code = i;
                    } else {
                        second = std::max(second, value);
                    }
                }
                double const want = scale * (best + bias[c]);
                ASSERT_NEAR(got, std::max(want, 0.0), 2e-5) << c << ' ' << y << ' ' << x;
                if (want > 1e-5 && best - second > 1e-5) {
                    ASSERT_EQ(winner, code) << c << ' ' << y << ' ' << x;
                }
                if (want < -1e-5) {
                    ASSERT_EQ(winner, no_winner);
                }
            }
        }
    }
}

TEST_P(kernels, convolution_forward_of_every_channel) {
    std::vector<std::uint16_t> all(10);
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    check_forward(k(), conv1, all, 1);
    all.resize(20);
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    check_forward(k(), conv2, all, 1);
}

TEST_P(kernels, convolution_forward_of_a_few_channels_leaves_the_others_alone) {
    check_forward(k(), conv2, {3, 4, 9, 17, 19}, 2);
    check_forward(k(), conv2, {11}, 2);
    check_forward(k(), conv2, {}, 2);
}

// A flat image has four equal pixels under every maximum: the first in reading order wins, as in PyTorch.
TEST_P(kernels, first_of_equal_maxima_wins) {
    std::vector<float> const image(896, 0.25f), weights(250, 0.5f), bias(10, 0.0f);
    std::vector<std::uint16_t> const one{0};
    std::vector<float> out(1920);
    std::vector<std::uint8_t> winners(1440, 99);
    k().convolution_forward(conv1, image.data(), weights.data(), bias.data(), one.data(), 1, 1, out.data(), winners.data());
    for (int i = 0; i < 144; ++i) ASSERT_EQ(winners[i], 0);
}

// b and c are equal, and larger than a and d: b comes first.
TEST_P(kernels, equal_maxima_on_the_diagonal) {
    std::vector<float> image(896, 0.0f), weights(250, 0.0f), bias(10, 0.0f);
    weights[0] = 1;  // the window's first tap: the output is the image itself
    image[0 * 32 + 1] = image[1 * 32 + 0] = 3;
    std::vector<std::uint16_t> const one{0};
    std::vector<float> out(1920);
    std::vector<std::uint8_t> winners(1440, 99);
    k().convolution_forward(conv1, image.data(), weights.data(), bias.data(), one.data(), 1, 1, out.data(), winners.data());
    EXPECT_EQ(winners[0], 1);
    EXPECT_EQ(out[0], 3.0f);
    EXPECT_EQ(winners[1], no_winner) << "zero is not positive";
}

struct entries {
    std::vector<std::int32_t> offset;
    std::vector<float> value;
    entries(convolution_shape const& s, int count) {
        random_stream const stream(5, 5);
        for (int i = 0; i < count; ++i) {
            auto const y = static_cast<int>(stream.bits(3 * i) % s.height),
                       x = static_cast<int>(stream.bits(3 * i + 1) % s.width);
            offset.push_back(y * s.in_row + x);
            value.push_back(stream.uniform(3 * i + 2) - 0.5f);
        }
    }
    gradient_list list() const { return {offset.data(), value.data(), static_cast<int>(offset.size())}; }
};

TEST_P(kernels, convolution_weight_gradient_adds_up) {
    for (auto const& s : {conv1, conv2}) {
        for (int count : {0, 1, 2, 7, 16, 143}) {
            auto const image = noise(static_cast<std::size_t>(s.in_channels * s.in_plane), 1);
            entries const e(s, count);
            std::vector<float> sums(static_cast<std::size_t>(s.in_channels * 5 * padded_row), 0.5f);
            k().convolution_weight_gradient(s, image.data(), e.list(), sums.data());
            for (int i = 0; i < s.in_channels; ++i) {
                for (int tap = 0; tap < 25; ++tap) {
                    double want = 0.5;
                    for (int j = 0; j < count; ++j)
                        want += double{e.value[j]} * image[i * s.in_plane + e.offset[j] + tap / 5 * s.in_row + tap % 5];
                    ASSERT_NEAR(sums[(i * 5 + tap / 5) * padded_row + tap % 5], want, 1e-5) << count << ' ' << i << ' ' << tap;
                }
            }
        }
    }
}

TEST_P(kernels, convolution_input_gradient_adds_up) {
    auto const& s = conv2;
    auto const weights = noise(convolution_taps * padded_channels, 2);
    entries const e(s, 33);
    std::vector<float> gradient(12 * 16 * padded_channels, 0.25f);
    k().convolution_input_gradient(s, weights.data(), e.list(), gradient.data());
    std::vector<double> want(gradient.size(), 0.25);
    for (int j = 0; j < 33; ++j) {
        for (int tap = 0; tap < 25; ++tap) {
            for (int c = 0; c < padded_channels; ++c)
                want[(e.offset[j] + tap / 5 * s.in_row + tap % 5) * padded_channels + c] +=
                    double{e.value[j]} * weights[tap * padded_channels + c];
        }
    }
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(gradient[i], want[i], 1e-5) << i;
}

// fc1, fc2, and sizes that leave a rest in every blocking.
TEST_P(kernels, linear_layers_of_every_batch_size) {
    for (auto const& s : {linear_shape{320, 320, 50, 56}, linear_shape{50, 56, 10, 16}, linear_shape{7, 8, 3, 8}}) {
        for (int images : {1, 2, 3, 4, 5, 31, 64}) {
            auto const rows = static_cast<std::size_t>(images);
            auto in = noise(rows * s.in_stride, 1), weights = noise(static_cast<std::size_t>(s.out * s.in_stride), 2);
            for (int k = s.in; k < s.in_stride; ++k) {
                for (int n = 0; n < images; ++n) in[n * s.in_stride + k] = 0;
                for (int o = 0; o < s.out; ++o) weights[o * s.in_stride + k] = 0;
            }
            auto const bias = noise(static_cast<std::size_t>(s.out), 3), back = noise(rows * s.out_stride, 4);
            std::vector<float> out(rows * s.out_stride, -7.0f), in_gradient(in.size()), weight_gradient(weights.size());
            k().linear_forward(s, images, in.data(), weights.data(), bias.data(), out.data());
            k().linear_input_gradient(s, images, back.data(), weights.data(), in_gradient.data());
            k().linear_weight_gradient(s, images, in.data(), back.data(), weight_gradient.data());
            for (int n = 0; n < images; ++n) {
                for (int o = 0; o < s.out; ++o) {
                    double want = bias[o];
                    for (int i = 0; i < s.in; ++i) want += double{in[n * s.in_stride + i]} * weights[o * s.in_stride + i];
                    ASSERT_NEAR(out[n * s.out_stride + o], want, 2e-5);
                }
                for (int o = s.out; o < s.out_stride; ++o)
                    ASSERT_EQ(out[n * s.out_stride + o], -7.0f) << "padding is not written";
                for (int i = 0; i < s.in_stride; ++i) {
                    double want = 0;
                    for (int o = 0; o < s.out; ++o) want += double{back[n * s.out_stride + o]} * weights[o * s.in_stride + i];
                    ASSERT_NEAR(in_gradient[n * s.in_stride + i], want, 2e-5);
                }
            }
            for (int o = 0; o < s.out; ++o) {
                for (int i = 0; i < s.in_stride; ++i) {
                    double want = 0;
                    for (int n = 0; n < images; ++n) want += double{back[n * s.out_stride + o]} * in[n * s.in_stride + i];
                    ASSERT_NEAR(weight_gradient[o * s.in_stride + i], want, 2e-5);
                }
            }
        }
    }
}

// Every combination of how the factors lie, with rests in rows, columns and depth, and more depth than one block has.
TEST_P(kernels, matrix_product) {
    std::vector<float> scratch(gemm_scratch_floats);
    for (auto const& s : {gemm_shape{1, 1, 1}, gemm_shape{13, 37, 41}, gemm_shape{64, 150, 300}, gemm_shape{200, 16, 520}}) {
        for (int form = 0; form < 8; ++form) {
            bool const a_across = form & 1, b_across = form & 2, add = form & 4;
            auto const a = noise(static_cast<std::size_t>(s.rows * s.depth), 1),
                       b = noise(static_cast<std::size_t>(s.columns * s.depth), 2);
            std::vector<float> c(static_cast<std::size_t>(s.rows * s.columns), 0.5f);
            std::vector<float const*> a_rows, b_rows;
            std::vector<float*> c_rows;
            for (int i = 0; i < (a_across ? s.rows : s.depth); ++i)
                a_rows.push_back(a.data() + i * (a_across ? s.depth : s.rows));
            for (int i = 0; i < (b_across ? s.columns : s.depth); ++i)
                b_rows.push_back(b.data() + i * (b_across ? s.depth : s.columns));
            for (int i = 0; i < s.rows; ++i) c_rows.push_back(c.data() + i * s.columns);
            k().gemm(s, {a_rows.data(), a_across}, {b_rows.data(), b_across}, c_rows.data(), add, scratch.data());
            for (int i = 0; i < s.rows; ++i) {
                for (int j = 0; j < s.columns; ++j) {
                    double want = add ? 0.5 : 0;
                    for (int d = 0; d < s.depth; ++d)
                        want += double{a_across ? a_rows[i][d] : a_rows[d][i]} * (b_across ? b_rows[j][d] : b_rows[d][j]);
                    ASSERT_NEAR(c_rows[i][j], want, 5e-5) << i << ' ' << j << ", form " << form;
                }
            }
        }
    }
}

TEST_P(kernels, normalise_and_sgd) {
    std::vector<std::uint8_t> bytes(28);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{228});
    std::vector<float> out(29, -1);
    k().normalise(bytes.data(), 28, 0.5f, -3, out.data());
    for (int i = 0; i < 28; ++i) EXPECT_FLOAT_EQ(out[i], static_cast<float>(228 + i) * 0.5f - 3);
    EXPECT_EQ(out[28], -1);

    std::vector<float> p(37, 1.0f), g(37, 2.0f), v(37, 4.0f);
    p[36] = 7;
    k().sgd(p.data(), g.data(), v.data(), 36, 0.25f, 0.5f);
    for (int i = 0; i < 36; ++i) {
        EXPECT_EQ(v[i], 4.0f);  // 0.5 * 4 + 2
        EXPECT_EQ(p[i], 0.0f);  // 1 - 0.25 * 4
    }
    EXPECT_EQ(p[36], 7.0f);
    k().sgd(p.data(), g.data(), v.data(), 36, 0.25f, 0.5f);
    EXPECT_EQ(p[0], -1.0f);  // the velocity stays 4: 0 - 0.25 * 4
}

INSTANTIATE_TEST_SUITE_P(isa, kernels, testing::ValuesIn(kernel_choices().begin(), kernel_choices().end()),
                         [](auto const& param_info) { return std::string(param_info.param.name); });

TEST(choose_kernels, by_name_and_by_processor) {
    EXPECT_STREQ(choose_kernels("baseline").name, "baseline");
    EXPECT_STREQ(choose_kernels().name, choose_kernels("auto").name);
    try {
        choose_kernels("avx1024");
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::usage);
        EXPECT_NE(std::string(e.what()).find("baseline"), std::string::npos) << e.what();
    }
}

}  // namespace
}  // namespace muster
