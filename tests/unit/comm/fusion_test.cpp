// The work of the fusion kernels: how it is shared out, and the body of the kernels, here run by the CPU thread after thread
// (what the GPU's own instructions do differently, conversions and wide accesses, is for tests/gpu).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/error.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "tests/thrown_message.hpp"

namespace muster::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t guard = 64;

/// Memory whose elements begin `shift` bytes after a multiple of 64, with bytes around them that nobody may write to.
struct guarded {
    std::vector<unsigned char> bytes;
    std::size_t begin = 0;
    std::size_t length = 0;

    guarded(std::size_t shift, std::size_t size) : bytes(size + 2 * guard + 64, 0xa5), length(size) {
        auto const address = std::bit_cast<std::uintptr_t>(bytes.data());
        begin = guard + (64 - (address + guard) % 64) % 64 + shift % 64;
    }
    std::uint64_t address() const { return std::bit_cast<std::uintptr_t>(bytes.data()) + begin; }
    template <typename T>
    T get(std::size_t i) const {
        T value;
        std::memcpy(&value, bytes.data() + begin + i * sizeof(T), sizeof(T));
        return value;
    }
    template <typename T>
    void set(std::size_t i, T value) {
        std::memcpy(bytes.data() + begin + i * sizeof(T), &value, sizeof(T));
    }
    bool untouched_around() const {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if ((i < begin || i >= begin + length) && bytes[i] != 0xa5) return false;
        return true;
    }
};

/// Runs all threads of all blocks.
template <typename Way>
void run_on_cpu(fusion_plan const& plan, typename Way::factor by, std::uint32_t threads = fusion_threads) {
    fusion_work const work{plan.segments.data(), plan.starts.data(),    plan.residuals.data(),
                           plan.pieces,          plan.pieces_per_block, 0};
    for (std::uint32_t block = 0; block < plan.blocks; ++block)
        for (std::uint32_t thread = 0; thread < threads; ++thread) run_thread<Way>(work, by, block, thread, threads);
}

template <typename Way>
constexpr fusion_way plain_way() {
    return {"test",
            fusion_shape<Way>::from_bytes,
            fusion_shape<Way>::to_bytes,
            fusion_shape<Way>::elements,
            sizeof(typename Way::factor),
            true};
}

/// A number that every type of elements here holds exactly, scaled by 2 as well.
template <typename Elements>
typename Elements::raw sample(std::size_t seed) {
    return Elements::narrow(static_cast<typename Elements::wide>(static_cast<int>(seed * 7 % 199) - 99));
}

/// Tensors of many lengths with places of many alignments, moved in one launch of up to `most_blocks` blocks.
template <typename From, typename To>
void check_way(std::span<std::size_t const> counts, std::size_t from_shift, std::size_t to_shift, std::uint32_t most_blocks) {
    using way = scaled<From, To>;
    using from = typename From::raw;
    using to = typename To::raw;
    std::vector<guarded> sources, targets;
    std::vector<fusion_item> items;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        sources.emplace_back(from_shift * sizeof(from) * (i + 1), counts[i] * sizeof(from));
        targets.emplace_back(to_shift * sizeof(to) * (i + 1), counts[i] * sizeof(to));
        for (std::size_t k = 0; k < counts[i]; ++k) sources.back().set<from>(k, sample<From>(i * 31 + k));
    }
    for (std::size_t i = 0; i < counts.size(); ++i) items.push_back({sources[i].address(), targets[i].address(), counts[i]});
    run_on_cpu<way>(plan_fusion(items, plain_way<way>(), most_blocks), 2);
    for (std::size_t i = 0; i < counts.size(); ++i) {
        ASSERT_TRUE(targets[i].untouched_around()) << "tensor " << i << " of " << counts[i];
        for (std::size_t k = 0; k < counts[i]; ++k)
            ASSERT_EQ(targets[i].template get<to>(k), way::apply(sample<From>(i * 31 + k), 2))
                << "tensor " << i << " element " << k;
    }
}

template <typename From, typename To>
void check_every_alignment() {
    std::vector<std::size_t> counts;
    for (std::size_t count = 0; count <= 40; ++count) counts.push_back(count);
    counts.insert(counts.end(), {1, 0, 5000, 1, 1, 0, 777});
    for (std::size_t from_shift = 0; from_shift < 16 / sizeof(typename From::raw); ++from_shift)
        for (std::size_t to_shift = 0; to_shift < 16 / sizeof(typename To::raw); ++to_shift)
            for (std::uint32_t const blocks : {1u, 3u, 1000u}) check_way<From, To>(counts, from_shift, to_shift, blocks);
}

TEST(fusion_body, every_alignment_and_length_f32_to_f32) {
    check_every_alignment<f32_elements, f32_elements>();
}
TEST(fusion_body, every_alignment_and_length_f32_to_f16) {
    check_every_alignment<f32_elements, f16_elements>();
}
TEST(fusion_body, every_alignment_and_length_bf16_to_f32) {
    check_every_alignment<bf16_elements, f32_elements>();
}
TEST(fusion_body, every_alignment_and_length_f64) {
    check_every_alignment<f64_elements, f64_elements>();
}
TEST(fusion_body, every_alignment_and_length_bf16_to_bf16) {
    check_every_alignment<bf16_elements, bf16_elements>();
}

TEST(fusion_body, what_rounding_loses_is_kept_at_every_alignment) {
    using way = ways::f32_bf16_kept;
    auto const of = choose_keeping_way(dtype::f32, dtype::bf16);
    for (std::size_t place = 0; place < 4 * 8 * 4; ++place)
        for (std::size_t const count : {1u, 7u, 8u, 9u, 100u}) {
            guarded source(place % 4 * 4, count * 4), target(place / 4 % 8 * 2, count * 2), rest(place / 32 * 4, count * 4);
            std::vector<float> residuals(count);
            for (std::size_t i = 0; i < count; ++i) {
                source.set(i, 0.1f * static_cast<float>(i + 1));
                rest.set(i, residuals[i] = 0.001f * static_cast<float>(i));
            }
            fusion_item const item{source.address(), target.address(), count, rest.address()};
            auto const plan = plan_fusion(std::span(&item, 1), of, 2);
            for (int run = 0; run < 2; ++run) {
                run_on_cpu<way>(plan, 3);
                for (std::size_t i = 0; i < count; ++i) {
                    ASSERT_EQ(target.get<std::uint16_t>(i), way::apply(source.get<float>(i), 3, residuals[i]));
                    ASSERT_EQ(rest.get<float>(i), residuals[i]);
                }
            }
            ASSERT_TRUE(source.untouched_around() && target.untouched_around() && rest.untouched_around()) << place;
        }
}

TEST(plan_fusion, residuals_lie_apart_and_aligned) {
    auto const of = choose_keeping_way(dtype::f32, dtype::f16);
    auto const refused = [&](std::uint64_t residual) {
        fusion_item const item{0x1000, 0x2000, 16, residual};
        try {
            plan_fusion(std::span(&item, 1), of, 1);
        } catch (error const& problem) {
            EXPECT_EQ(problem.code(), errc::usage);
            EXPECT_THAT(problem.what(), HasSubstr("its residual at"));
            return true;
        }
        return false;
    };
    EXPECT_TRUE(refused(0) && refused(0x3002) && refused(0x103c) && refused(0x201c) && refused(0x0fc4));
    EXPECT_FALSE(refused(0x1040) || refused(0x2020) || refused(0x0fc0));
    EXPECT_THROW(choose_keeping_way(dtype::f32, dtype::f32), error);
}

TEST(fusion_body, bytes_are_copied_at_every_alignment) {
    for (std::size_t from_shift = 0; from_shift < 16; ++from_shift)
        for (std::size_t to_shift = 0; to_shift < 16; ++to_shift)
            for (std::size_t const count : {1u, 15u, 16u, 17u, 63u, 1000u}) {
                guarded source(from_shift, count), target(to_shift, count);
                for (std::size_t i = 0; i < count; ++i) source.set<std::uint8_t>(i, static_cast<std::uint8_t>(i * 3 + 1));
                fusion_item const item{source.address(), target.address(), count};
                run_on_cpu<ways::copy_1>(plan_fusion(std::span(&item, 1), choose_way(dtype::u8, dtype::u8, 1), 4), 0);
                ASSERT_TRUE(target.untouched_around());
                for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(target.get<std::uint8_t>(i), source.get<std::uint8_t>(i));
            }
}

TEST(fusion_body, copies_keep_every_bit) {
    std::vector<std::uint32_t> const bits{0x7f800001, 0xffc12345, 0x00000001, 0x80000000};  // NaNs that signal, a subnormal, -0
    std::vector<std::uint32_t> got(bits.size());
    fusion_item const item{std::bit_cast<std::uint64_t>(bits.data()), std::bit_cast<std::uint64_t>(got.data()), bits.size()};
    auto const way = choose_way(dtype::f32, dtype::f32, 1);
    EXPECT_EQ(way.kernel, "muster_copy_4");
    run_on_cpu<ways::copy_4>(plan_fusion(std::span(&item, 1), way, 1), 0);
    EXPECT_EQ(got, bits);
}

/// An element that two threads moved would be scaled twice.
TEST(fusion_body, every_element_is_moved_once) {
    std::mt19937 random(5);
    for (int round = 0; round < 50; ++round) {
        std::vector<guarded> tensors;
        std::vector<fusion_item> items;
        std::size_t const how_many = 1 + random() % 60;
        for (std::size_t i = 0; i < how_many; ++i) {
            std::size_t const count = random() % 3 == 0 ? random() % 20000 : random() % 30;
            tensors.emplace_back(4 * (random() % 16), count * 4);
            for (std::size_t k = 0; k < count; ++k) tensors.back().set<float>(k, 1.0f);
        }
        for (auto const& tensor : tensors) items.push_back({tensor.address(), tensor.address(), tensor.length / 4});
        auto const way = choose_way(dtype::f32, dtype::f32, 3);
        run_on_cpu<ways::f32_f32>(plan_fusion(items, way, static_cast<std::uint32_t>(1 + random() % 40)), 3.0f, 32);
        for (auto const& tensor : tensors) {
            ASSERT_TRUE(tensor.untouched_around());
            for (std::size_t k = 0; k < tensor.length / 4; ++k) ASSERT_EQ(tensor.get<float>(k), 3.0f);
        }
    }
}

TEST(fusion_plan, blocks_get_the_same_number_of_pieces_whatever_the_tensors) {
    std::vector<fusion_item> items;
    std::uint64_t at = 1 << 20;
    for (std::uint64_t const count : {std::uint64_t{1} << 24, std::uint64_t{64}, std::uint64_t{0}, std::uint64_t{1000000}}) {
        items.push_back({at, at + (std::uint64_t{1} << 40), count});
        at += (count * 4 + 4095) / 4096 * 4096;
    }
    for (int i = 0; i < 10000; ++i)
        items.push_back({at + 256u * static_cast<unsigned>(i), (1ull << 50) + 256u * static_cast<unsigned>(i), 64});
    for (std::uint32_t const blocks : {1u, 2u, 500u, 1056u, 100000u}) {
        auto const plan = plan_fusion(items, choose_way(dtype::f32, dtype::f32, 1), blocks);
        EXPECT_LE(plan.blocks, blocks);
        EXPECT_EQ(plan.pieces, (1u << 22) + 16u + 250000u + 10000u * 16u);
        EXPECT_EQ(plan.pieces_per_block % fusion_threads, 0u);
        EXPECT_GE(static_cast<std::uint64_t>(plan.blocks) * plan.pieces_per_block, plan.pieces);
        EXPECT_LT(static_cast<std::uint64_t>(plan.blocks - 1) * plan.pieces_per_block, plan.pieces);
        ASSERT_EQ(plan.starts.size(), plan.blocks + 1u);
        EXPECT_EQ(plan.starts.back(), plan.segments.size() - 1);
        for (std::uint32_t block = 0; block < plan.blocks; ++block) {
            auto const first = static_cast<std::uint64_t>(block) * plan.pieces_per_block;
            auto const start = plan.starts[block];
            ASSERT_LE(plan.segments[start].first_piece, first);
            if (start + 1 < plan.segments.size()) {
                ASSERT_GT(plan.segments[start + 1].first_piece, first);
            }
            ASSERT_LE(start, plan.starts[block + 1]);
        }
    }
}

TEST(fusion_plan, small_work_takes_as_many_blocks_as_it_fills) {
    fusion_item const item{256, 65536, 1024};  // 256 pieces of 4 floats
    EXPECT_EQ(plan_fusion(std::span(&item, 1), choose_way(dtype::f32, dtype::f32, 1), 1000).blocks, 1u);
    fusion_item const more{256, 65536, 1025};
    EXPECT_EQ(plan_fusion(std::span(&more, 1), choose_way(dtype::f32, dtype::f32, 1), 1000).blocks, 2u);
    EXPECT_EQ(plan_fusion({}, choose_way(dtype::f32, dtype::f32, 1), 1000).blocks, 0u);
}

TEST(fusion_plan, refuses_places_that_are_misaligned_or_overlap) {
    auto const way = choose_way(dtype::f32, dtype::bf16, 1);
    auto const plan = [&](fusion_item item) {
        return message_of(errc::usage, [&] { plan_fusion(std::span(&item, 1), way, 8); });
    };
    EXPECT_THAT(plan({2, 4096, 10}), HasSubstr("from 0x2 to 0x1000, which must be aligned to 4 and 2 bytes"));
    EXPECT_THAT(plan({4096, 1, 10}), HasSubstr("aligned"));
    EXPECT_THAT(plan({0, 4096, 10}), HasSubstr("aligned"));
    EXPECT_THAT(plan({4096, 4096 + 396, 100}), HasSubstr("overlap"));
    EXPECT_THAT(plan({4096, 4096, 100}), HasSubstr("overlap"));
    EXPECT_NO_THROW(plan_fusion(std::array{fusion_item{4096, 4096 + 400, 100}}, way, 8));
    EXPECT_NO_THROW(plan_fusion(std::array{fusion_item{1, 3, 0}}, way, 8));  // nothing is moved
}

TEST(choose_way, knows_the_pairs_and_says_which_it_lacks) {
    EXPECT_EQ(choose_way(dtype::f32, dtype::bf16, 0.5).kernel, "muster_f32_bf16");
    EXPECT_EQ(choose_way(dtype::f16, dtype::f32, 1).kernel, "muster_f16_f32");
    EXPECT_EQ(choose_way(dtype::i64, dtype::i64, 1).kernel, "muster_copy_8");
    EXPECT_EQ(choose_way(dtype::bf16, dtype::bf16, 1).kernel, "muster_copy_2");
    EXPECT_EQ(choose_way(dtype::f64, dtype::f64, 0.25).factor_bytes, 8u);
    EXPECT_THAT(message_of(errc::unavailable, [] { choose_way(dtype::f16, dtype::bf16, 1); }), HasSubstr("from f16 to bf16"));
    EXPECT_THAT(message_of(errc::usage, [] { choose_way(dtype::i32, dtype::i32, 0.5); }),
                HasSubstr("i32 cannot be scaled by 0.5"));
}

TEST(fused_offsets, every_tensor_begins_at_16_bytes) {
    EXPECT_THAT(fused_offsets(std::array<std::size_t, 4>{5, 0, 8, 1}, dtype::bf16), ElementsAre(0, 8, 8, 16, 24));
    EXPECT_THAT(fused_offsets(std::array<std::size_t, 2>{4, 3}, dtype::f32), ElementsAre(0, 4, 8));
    EXPECT_THAT(fused_offsets({}, dtype::u8), ElementsAre(0));
}

}  // namespace
}  // namespace muster::cuda
