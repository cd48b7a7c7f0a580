#include "launch/settings/parts.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/help/help.hpp"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(parts, the_commands_are_those_of_the_parts_that_are_there) {
    for (auto const& row : commands_of_all_parts()) EXPECT_EQ(find_command(row.name) != nullptr, has_part(row.part)) << row.name;
    EXPECT_TRUE(std::ranges::all_of(commands(), [](auto const& row) { return has_part(row.part); }));
    EXPECT_TRUE(has_part(""));
    EXPECT_FALSE(has_part("no such part"));
    EXPECT_FALSE(has_part("without"));
}

TEST(parts, a_command_that_is_absent_says_what_to_do) {
    EXPECT_EQ(absent_command({.name = "x", .part = "y"}),
              "muster x: this muster was built without the part y; build it with all parts, from muster's source: ./bootstrap.sh "
              "install --prefix DIR");
    auto const& parts = commands_of_all_parts();
    auto const built = std::ranges::find_if(parts, [](auto const& row) { return row.is_program && has_part(row.part); });
    if (built == parts.end()) GTEST_SKIP() << "this build has no part with a program of its own";
    EXPECT_THAT(absent_command(*built),
                testing::AllOf(HasSubstr(fmt::format("there is no program muster-{} in muster's folder", built->name)),
                               HasSubstr(fmt::format("--component {}", built->part)), Not(HasSubstr("without the part"))));
}

}  // namespace
}  // namespace muster
