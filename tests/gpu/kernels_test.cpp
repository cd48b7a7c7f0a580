// The fusion kernels on the GPU against the CPU's arithmetic: every way, every alignment, hundreds of tensors in one launch.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "base/error.hpp"
#include "comm/tensor/compress.hpp"
#include "kernels_test.hpp"

namespace muster {
namespace {

using cuda::fusion_launch;
using test::gpu_bytes;
using test::kernels;

template <typename T>
double value_of(T element) {
    if constexpr (std::is_arithmetic_v<T>)
        return static_cast<double>(element);
    else
        return static_cast<double>(static_cast<float>(element));
}

/// The CPU's element: one multiplication in f32 (f64 for f64), one rounding to what is narrower.
template <typename From, typename To>
To moved(From element, double factor) {
    if constexpr (std::is_same_v<From, double>)
        return static_cast<To>(element * factor);
    else if constexpr (std::is_same_v<From, To> && std::is_integral_v<From>)
        return element;
    else
        return static_cast<To>(static_cast<float>(element) * static_cast<float>(factor));
}

/// Where tensors lie in one piece of memory: at odd places, with gaps of unwritten elements between them.
template <typename T>
std::vector<std::size_t> places(std::vector<std::size_t> const& counts, std::mt19937& random, std::size_t& end) {
    std::vector<std::size_t> result;
    std::size_t at = 0;
    for (std::size_t const count : counts) {
        at += random() % 2 == 0 ? (16 - at * sizeof(T) % 16) / sizeof(T) : 1 + random() % 9;
        result.push_back(at);
        at += count;
    }
    end = at + 16;
    return result;
}

std::vector<std::size_t> many_counts(std::mt19937& random) {
    std::size_t const large = test::on_fake() ? 1 << 12 : 1 << 20;
    std::vector<std::size_t> counts{0, 1, 2, large, 64, large - 3};
    for (int i = 0; i < 300; ++i) counts.push_back(random() % (test::on_fake() ? 300 : 3000));
    return counts;
}

template <typename T>
std::vector<tensor_view> views(gpu_bytes const& memory, std::vector<std::size_t> const& first,
                               std::vector<std::size_t> const& counts) {
    std::vector<tensor_view> result;
    for (std::size_t i = 0; i < counts.size(); ++i)
        result.push_back(
            {std::bit_cast<void*>(memory.address() + first[i] * sizeof(T)), counts[i], dtype_of<T>(), memory_kind::device});
    return result;
}

template <typename From, typename To>
void check_way(double factor) {
    std::mt19937 random(11);
    auto const counts = many_counts(random);
    std::size_t from_end = 0, to_end = 0;
    auto const from_places = places<From>(counts, random, from_end);
    auto const to_places = places<To>(counts, random, to_end);
    std::vector<From> source(from_end);
    for (auto& each : source) each = static_cast<From>(static_cast<float>(static_cast<int>(random() % 20001) - 10000) / 16.0f);
    std::vector<To> wanted(to_end, static_cast<To>(77));
    gpu_bytes from(from_end * sizeof(From)), to(to_end * sizeof(To));
    from.upload(std::as_bytes(std::span(source)));
    to.upload(std::as_bytes(std::span(wanted)));
    fusion_launch launch(kernels());
    launch.prepare(views<From>(from, from_places, counts), views<To>(to, to_places, counts), factor, nullptr);
    launch.run(nullptr);
    auto const raw = to.download();
    for (std::size_t i = 0; i < counts.size(); ++i)
        for (std::size_t k = 0; k < counts[i]; ++k)
            wanted[to_places[i] + k] = moved<From, To>(source[from_places[i] + k], factor);
    std::vector<To> got(to_end);
    std::memcpy(static_cast<void*>(got.data()), raw.data(), raw.size());
    for (std::size_t k = 0; k < to_end; ++k)
        ASSERT_EQ(std::memcmp(&got[k], &wanted[k], sizeof(To)), 0)
            << "element " << k << " is " << value_of(got[k]) << " instead of " << value_of(wanted[k]);
}

TEST(kernels, f32_to_f32) {
    check_way<float, float>(1);
    check_way<float, float>(0.3);
}
TEST(kernels, f32_to_f16_and_back) {
    check_way<float, half>(1);
    check_way<float, half>(0.3);
    check_way<half, float>(1);
    check_way<half, float>(-1.7);
}
TEST(kernels, f32_to_bf16_and_back) {
    check_way<float, bfloat16>(1);
    check_way<float, bfloat16>(0.3);
    check_way<bfloat16, float>(1);
    check_way<bfloat16, float>(-1.7);
}
TEST(kernels, narrow_types_scaled) {
    check_way<half, half>(1.0 / 3);
    check_way<bfloat16, bfloat16>(1.0 / 3);
}
TEST(kernels, f64_scaled) {
    check_way<double, double>(1.0 / 3);
}
TEST(kernels, copies_of_every_size) {
    check_way<double, double>(1);
    check_way<bfloat16, bfloat16>(1);
    check_way<std::int64_t, std::int64_t>(1);
    check_way<std::uint8_t, std::uint8_t>(1);
    check_way<std::int8_t, std::int8_t>(1);
}

/// Several steps with error feedback, tensors and residuals at odd places, infinities among them: as on the CPU, bit for bit.
template <typename To>
void check_feedback(compression how) {
    std::mt19937 random(5);
    auto const counts = many_counts(random);
    std::size_t from_end = 0, to_end = 0, kept_end = 0;
    auto const from_places = places<float>(counts, random, from_end);
    auto const to_places = places<To>(counts, random, to_end);
    auto const kept_places = places<float>(counts, random, kept_end);
    gpu_bytes from(from_end * sizeof(float)), to(to_end * sizeof(To)), kept(kept_end * sizeof(float));
    std::vector<float> source(from_end), residuals(kept_end, 0.0f);
    std::vector<To> wanted(to_end, static_cast<To>(77));
    to.upload(std::as_bytes(std::span(wanted)));
    kept.upload(std::as_bytes(std::span(residuals)));
    auto const all_kept = views<float>(kept, kept_places, counts);
    fusion_launch launch(kernels());
    launch.prepare(views<float>(from, from_places, counts), views<To>(to, to_places, counts), 0.3, nullptr, 0, all_kept);
    for (int step = 0; step < 3; ++step) {
        for (auto& each : source) each = static_cast<float>(static_cast<int>(random() % 20001) - 10000) / 7.0f;
        source[from_places[3] + 5] = std::numeric_limits<float>::infinity();
        source[from_places[4] + 1] = 3e38f;
        from.upload(std::as_bytes(std::span(source)));
        launch.run(nullptr);
        for (std::size_t i = 0; i < counts.size(); ++i)
            compress(how, {&source[from_places[i]], counts[i]}, 0.3f, {&residuals[kept_places[i]], counts[i]},
                     &wanted[to_places[i]], simd::baseline);
        auto const rounded = to.download(), rest = kept.download();
        ASSERT_EQ(std::memcmp(rounded.data(), wanted.data(), rounded.size()), 0) << "step " << step;
        ASSERT_EQ(std::memcmp(rest.data(), residuals.data(), rest.size()), 0) << "step " << step;
    }
}

TEST(kernels, error_feedback) {
    check_feedback<half>(compression::f16);
    check_feedback<bfloat16>(compression::bf16);
}

/// The values at the edges of f16 and bf16, by the GPU's own conversions.
template <typename To>
void check_edges() {
    constexpr float inf = std::numeric_limits<float>::infinity();
    std::vector<float> values{0.0f,          -0.0f,         inf,
                              -inf,          65504.0f,      65519.0f,
                              65520.0f,      -70000.0f,     1e-8f,
                              5.9604645e-8f, 2.9802322e-8f, 3.4e38f,
                              6.1e-5f,       1.0009765625f, 1.00146484375f,
                              1.00390625f,   1.01171875f,   std::numeric_limits<float>::denorm_min()};
    std::mt19937 random(3);
    for (int i = 0; i < 100000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    test::gpu_vector<float> const from(values);
    test::gpu_vector<To> const to(std::vector<To>(values.size()));
    fusion_launch launch(kernels());
    launch.prepare(std::array{from.view()}, std::array{to.view()}, 1, nullptr);
    launch.run(nullptr);
    auto const got = to.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i]))
            ASSERT_TRUE(std::isnan(static_cast<float>(got[i]))) << i;
        else
            ASSERT_EQ(got[i].bits(), To(values[i]).bits()) << values[i];
    }
}

TEST(kernels, edges_of_f16) {
    check_edges<half>();
}
TEST(kernels, edges_of_bf16) {
    check_edges<bfloat16>();
}

TEST(kernels, every_half_widens_exactly) {
    std::vector<half> values;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) values.push_back(half::from_bits(static_cast<std::uint16_t>(bits)));
    test::gpu_vector<half> const from(values);
    test::gpu_vector<float> const to{std::vector<float>(values.size())};
    fusion_launch launch(kernels());
    launch.prepare(std::array{from.view()}, std::array{to.view()}, 1, nullptr);
    launch.run(nullptr);
    auto const got = to.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
        float const wanted = static_cast<float>(values[i]);
        if (std::isnan(wanted))
            ASSERT_TRUE(std::isnan(got[i]));
        else
            ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(wanted));
    }
}

TEST(kernels, prepared_once_and_run_often_in_place_with_any_number_of_blocks) {
    for (std::uint32_t const blocks : {1u, 7u, 100000u}) {
        std::vector<float> values(100000, 1.0f);
        test::gpu_vector<float> const memory(values);
        fusion_launch launch(kernels());
        launch.prepare(std::array{memory.view()}, std::array{memory.view()}, 2, nullptr, blocks);
        for (int i = 0; i < 10; ++i) launch.run(nullptr);
        for (float const each : memory.values()) ASSERT_EQ(each, 1024.0f);
    }
}

TEST(kernels, prepared_again_with_more_tensors) {
    fusion_launch launch(kernels());
    for (std::size_t const count : {1u, 3u, 1000u, 2u}) {
        test::gpu_vector<std::int32_t> const from{std::vector<std::int32_t>(count, 5)}, to{std::vector<std::int32_t>(count, 0)};
        std::vector<tensor_view> sources, targets;
        for (std::size_t i = 0; i < count; ++i) {
            sources.push_back(part_of(from.view(), {i, 1}));
            targets.push_back(part_of(to.view(), {i, 1}));
        }
        launch.prepare(sources, targets, 1, nullptr);
        launch.run(nullptr);
        for (auto const each : to.values()) ASSERT_EQ(each, 5);
    }
    launch.prepare({}, {}, 1, nullptr);
    launch.run(nullptr);
    EXPECT_EQ(launch.bytes_moved(), 0u);
}

TEST(kernels, wrong_arguments_are_told) {
    test::gpu_vector<float> const a{std::vector<float>(4)}, b{std::vector<float>(5)};
    fusion_launch launch(kernels());
    EXPECT_THROW(launch.prepare(std::array{a.view()}, std::array{b.view()}, 1, nullptr), error);
    tensor_view host = a.view();
    host.where = memory_kind::host;
    EXPECT_THROW(launch.prepare(std::array{a.view()}, std::array{host}, 1, nullptr), error);
    EXPECT_THROW(launch.prepare(std::array{a.view()}, {}, 1, nullptr), error);
    test::gpu_vector<half> const narrow{std::vector<half>(4)};
    EXPECT_THROW(launch.prepare(std::array{a.view()}, std::array{narrow.view()}, 1, nullptr, 0, std::array{b.view()}), error);
    EXPECT_THROW(launch.prepare(std::array{a.view()}, std::array{narrow.view()}, 1, nullptr, 0, std::array{a.view()}), error);
    EXPECT_THROW(launch.prepare(std::array{a.view()}, std::array{narrow.view()}, 1, nullptr, 0, std::array{narrow.view()}),
                 error);
    EXPECT_THROW(launch.prepare(std::array{b.view()}, std::array{b.view()}, 1, nullptr, 0, std::array{b.view()}), error);
}

}  // namespace
}  // namespace muster
