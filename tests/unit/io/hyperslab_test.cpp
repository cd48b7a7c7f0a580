#include "io/hdf5/hyperslab.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

TEST(hyperslab, shards_cover_without_gap_or_overlap) {
    for (std::size_t const samples : {0u, 1u, 2u, 7u, 64u, 1000u})
        for (int const world : {1, 2, 3, 8, 100})
            for (std::size_t const block : {1u, 3u, 64u}) {
                std::size_t next = 0;
                for (int rank = 0; rank < world; ++rank) {
                    hyperslab const shard = shard_of_blocks(samples, block, rank, world);
                    ASSERT_EQ(shard.first, next);
                    ASSERT_TRUE(shard.first % block == 0 || shard.empty());
                    next = shard.end();
                    if (block == 1) {
                        ASSERT_EQ(shard, shard_of(samples, rank, world));
                        ASSERT_LE(shard_of(samples, 0, world).count - shard.count, 1u) << "the first has the most";
                    }
                }
                ASSERT_EQ(next, samples);
            }
}

TEST(hyperslab, shards_of_known_sizes) {
    EXPECT_EQ(shard_of(10, 0, 4), (hyperslab{0, 3}));
    EXPECT_EQ(shard_of(10, 1, 4), (hyperslab{3, 3}));
    EXPECT_EQ(shard_of(10, 3, 4), (hyperslab{8, 2}));
    EXPECT_EQ(shard_of(2, 3, 4), (hyperslab{2, 0}));
    EXPECT_EQ(shard_of_blocks(10, 4, 0, 2), (hyperslab{0, 8}));
    EXPECT_EQ(shard_of_blocks(10, 4, 1, 2), (hyperslab{8, 2}));
}

TEST(hyperslab, intersections) {
    EXPECT_EQ(intersect({0, 10}, {5, 10}), (hyperslab{5, 5}));
    EXPECT_EQ(intersect({5, 2}, {0, 100}), (hyperslab{5, 2}));
    EXPECT_TRUE(intersect({0, 5}, {5, 5}).empty());
    EXPECT_TRUE(intersect({9, 1}, {0, 5}).empty());
}

TEST(hyperslab, no_rank_outside_its_world) {
    EXPECT_THROW(shard_of(10, 4, 4), error);
    EXPECT_THROW(shard_of(10, -1, 4), error);
    EXPECT_THROW(shard_of(10, 0, 0), error);
}

}  // namespace
}  // namespace muster
