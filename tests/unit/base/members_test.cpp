#include "base/codec/member_names.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>

namespace muster {
namespace {

struct none {};
struct pair {
    int number = 0;
    std::string text;
};

TEST(members, are_references_in_their_order) {
    pair of{1, "a"};
    std::get<0>(members_of(of)) = 2;
    std::get<1>(members_of(of)) += "b";
    EXPECT_EQ(of.number, 2);
    EXPECT_EQ(of.text, "ab");
    pair const fixed{3, "c"};
    EXPECT_EQ(&std::get<1>(members_of(fixed)), &fixed.text);
    none empty;
    EXPECT_EQ(std::tuple_size_v<decltype(members_of(empty))>, 0u);
}

TEST(members, have_the_names_of_their_declaration) {
    pair of{1, "a"};
    std::string names;
    for_each_member(of, [&](std::string_view name, auto& member) {
        names += std::string(name) + ' ';
        member = {};
    });
    EXPECT_EQ(names, "number text ");
    EXPECT_EQ(of.text, "");
    none const empty;
    for_each_member(empty, [&](std::string_view, auto&) { names.clear(); });
    EXPECT_NE(names, "");
}

}  // namespace
}  // namespace muster
