#include "base/codec/field_count.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace muster {
namespace {

struct none {};
struct inner {
    int a = 0;
    std::string b;
};
struct outer {
    inner first;
    std::optional<int> second;
    std::optional<std::string> third;
    std::vector<inner> fourth;
    bool fifth = false;
    enum class word { one } sixth = word::one;
};

TEST(field_count, counts_members_once_whatever_their_type) {
    EXPECT_EQ(field_count<none>, 0u);
    EXPECT_EQ(field_count<inner>, 2u);
    EXPECT_EQ(field_count<outer>, 6u);
    EXPECT_EQ(field_count<outer const>, 6u);
}

}  // namespace
}  // namespace muster
