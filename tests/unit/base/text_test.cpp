#include "base/text.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

TEST(text, carets_point_at_the_fault) {
    EXPECT_EQ(render_caret("site.toml", "a = 1\nb = x\n", 10, "no"), "site.toml:2:5: no\n  b = x\n      ^");
    EXPECT_EQ(render_caret("v", "", 99, "empty"), "v:1:1: empty\n  \n  ^");
}

TEST(text, carets_show_no_control_characters_of_the_message_either) {
    EXPECT_EQ(render_caret("v", "x", 0, std::string_view("unit 'a\0\nb'", 11)), "v:1:1: unit 'a??b'\n  x\n  ^");
}

TEST(text, carets_survive_any_bytes) {
    std::string const noise = std::string(500, '\x80') + "\n\0\n" + std::string(300, 'y');
    for (std::size_t i = 0; i < noise.size() + 5; ++i) {
        auto const shown = render_caret("x", noise, i, "m");
        EXPECT_EQ(shown.find('\x80'), std::string::npos);
        EXPECT_LT(shown.size(), 400u);
    }
}

TEST(text, splits_and_trims) {
    EXPECT_EQ(split("a,,b", ',').size(), 3u);
    EXPECT_EQ(split("", ',').size(), 1u);
    EXPECT_EQ(trim("  a b\n"), "a b");
    EXPECT_EQ(trim(" \t"), "");
}

TEST(text, numbers_are_whole_or_nothing) {
    EXPECT_EQ(parse_integer("42"), 42);
    EXPECT_EQ(parse_integer("-1"), -1);
    for (char const* bad : {"", " 1", "1 ", "0x10", "1.0", "99999999999999999999"}) EXPECT_FALSE(parse_integer(bad)) << bad;
}

TEST(text, nearest_name) {
    std::vector<std::string> const names{"timeout", "start-timeout", "grace"};
    EXPECT_EQ(nearest("timeuot", names), "timeout");
    EXPECT_EQ(nearest("grade", names), "grace");
    EXPECT_EQ(nearest("zzzzzzzz", names), std::nullopt);
}

TEST(text, shell_quoting_keeps_every_byte) {
    EXPECT_EQ(shell_quote("plain-1.2/x"), "plain-1.2/x");
    EXPECT_EQ(shell_quote(""), "''");
    EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_quote("$(rm -rf ~)\n`x`"), "'$(rm -rf ~)\n`x`'");
    EXPECT_EQ(shell_quote("~root"), "'~root'");
    EXPECT_THROW(shell_quote(std::string_view("a\0b", 3)), error);
}

}  // namespace
}  // namespace muster
