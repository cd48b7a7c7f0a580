// The folder of links by which programs find the fakes (over_fake_gpus.sh).
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/shared_library.hpp"

namespace muster {
namespace {

TEST(fake_libraries, both_names_are_one_loaded_library) {
    std::array<std::string, 1> const driver{MUSTER_FAKE_LIBRARIES "/libcuda.so.1"}, nccl{MUSTER_FAKE_LIBRARIES "/libnccl.so.2"};
    shared_library const one(driver), other(nccl);
    ASSERT_TRUE(one) << one.missing();
    ASSERT_TRUE(other) << other.missing();
    EXPECT_EQ(one.symbol<void()>("fake_reset"), other.symbol<void()>("fake_reset"));
    EXPECT_NE(one.symbol<void()>("fake_reset"), nullptr);
}

}  // namespace
}  // namespace muster
