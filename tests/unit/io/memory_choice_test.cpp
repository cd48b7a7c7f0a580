// The choice of a loader's memory mode from what is known of memory, file, sampler and ranks.
#include "io/loader/memory_choice.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(memory_choice, samples_that_fit_are_held_once_a_node_where_ranks_can_share) {
    EXPECT_EQ(choose_memory({.together = true, .fits = true}), memory_mode::shared);
    EXPECT_EQ(choose_memory({.fits = true}), memory_mode::whole);
    EXPECT_EQ(choose_memory({.sharded = true, .fits = true}), memory_mode::shard);
}

TEST(memory_choice, samples_that_do_not_fit_stay_in_the_file) {
    EXPECT_EQ(choose_memory({.mappable = true, .windowed = true, .together = true}), memory_mode::windowed);
    EXPECT_EQ(choose_memory({.mappable = true, .together = true}), memory_mode::mapped);
}

TEST(memory_choice, of_a_chunked_file_that_does_not_fit_a_shard_is_tried) {
    EXPECT_EQ(choose_memory({.windowed = true, .together = true}), memory_mode::windowed);
    EXPECT_EQ(choose_memory({.together = true}), memory_mode::shard);
    EXPECT_EQ(choose_memory({.sharded = true}), memory_mode::shard);
}

}  // namespace
}  // namespace muster
