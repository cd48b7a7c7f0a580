// Pinned buffers on the FAKE driver: they are given, can be written, and are refused where there is no GPU.
#include "comm/cuda/handles.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "fake_ranks.hpp"

namespace muster {
namespace {

TEST(pinned_buffer, is_memory_of_the_size_asked_for) {
    auto buffer = cuda::pinned_buffer::allocate(test::fake_driver(), 1000, 0);
    ASSERT_EQ(buffer.bytes().size(), 1000u);
    for (std::uint8_t& each : buffer.bytes()) each = 7;
    cuda::pinned_buffer const moved = std::move(buffer);
    EXPECT_EQ(moved.bytes()[999], 7);
    EXPECT_TRUE(cuda::pinned_buffer::allocate(test::fake_driver(), 0, 0).bytes().empty());
}

TEST(pinned_buffer, is_refused_without_a_gpu) {
    cuda::found_driver none;
    none.why_not = "no CUDA driver: none was looked for";
    try {
        cuda::pinned_buffer::allocate(none, 1000, 0);
        FAIL() << "memory for no GPU";
    } catch (error const& problem) {
        EXPECT_EQ(problem.code(), errc::unavailable);
        EXPECT_STREQ(problem.what(), "pinned memory: no CUDA driver: none was looked for");
    }
}

}  // namespace
}  // namespace muster
