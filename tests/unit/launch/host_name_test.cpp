#include "launch/system/network.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(host_names, parts) {
    EXPECT_EQ(short_name("gpu12.cluster.org"), "gpu12");
    EXPECT_EQ(short_name("gpu12"), "gpu12");
    EXPECT_EQ(without_user("user@gpu12.cluster.org"), "gpu12.cluster.org");
    EXPECT_EQ(without_user("gpu12"), "gpu12");
    EXPECT_EQ(short_host_name().find('.'), std::string::npos);
    EXPECT_FALSE(short_host_name().empty());
}

}  // namespace
}  // namespace muster
