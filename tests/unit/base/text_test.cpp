#include "base/text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/process/kernel_files.hpp"

namespace muster {
namespace {

TEST(text, without_controls_moves_no_cursor) {
    EXPECT_EQ(without_controls("a\tb\n"), "a\tb\n");
    EXPECT_EQ(without_controls("\033]0;pwn\007x\r\x7f"), "\\x1b]0;pwn\\x07x\\x0d\\x7f");
    EXPECT_EQ(without_controls(std::string_view("\0b", 2)), "\\x00b");
    EXPECT_EQ(without_controls("\u009b2J \u202eevil\u2066 \u061c\u200f\u2028"),
              "\\u009b2J \\u202eevil\\u2066 \\u061c\\u200f\\u2028");
    EXPECT_EQ(without_controls("\x9b"
                               "2J \xc3 \xc0\x9b \xed\xa0\x80 \xf5 \xe2\x80"),
              "\\x9b"
              "2J \\xc3 \\xc0\\x9b \\xed\\xa0\\x80 \\xf5 \\xe2\\x80");
    EXPECT_EQ(without_controls("日本 😀 שלום"), "日本 😀 שלום");
    EXPECT_EQ(without_controls("r\u00e9sum\u00e9"), "r\u00e9sum\u00e9");
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

TEST(text, counts_are_read_as_the_kernel_writes_them) {
    EXPECT_EQ(parse_count("42\n"), 42u);
    EXPECT_EQ(parse_count("  18446744073709551615 kB"), 18446744073709551615u);
    for (char const* bad : {"", "max\n", "-1", "1.0", "x 1", "18446744073709551616"}) EXPECT_FALSE(parse_count(bad)) << bad;
    constexpr auto* text = "rchar: 7\nread_bytes_of_others 9\nread_bytes: 8192\nnr 5\nnr 6\nbad: -1\nlast:\t4";
    EXPECT_EQ(count_in(text, "read_bytes"), 8192u);
    EXPECT_EQ(count_in(text, "nr"), 5u);
    EXPECT_EQ(count_in(text, "last"), 4u);
    for (char const* missing : {"read", "char", "bad", ""}) EXPECT_FALSE(count_in(text, missing)) << missing;
    EXPECT_FALSE(count_in("", "a"));
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

TEST(text, bytes_that_are_no_utf8) {
    for (char const* const good : {"", "abc", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"})
        EXPECT_EQ(not_utf8_at(good), std::nullopt) << good;
    EXPECT_EQ(not_utf8_at("caf\xe9"), 3u) << "Latin-1";
    for (char const* const bad : {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8", "\xe2\x82"})
        EXPECT_EQ(not_utf8_at(bad), 0u);
}

template <typename Text>
concept can_be_split = requires(Text&& text) {
    split(std::forward<Text>(text), ',');
};

TEST(text, of_a_string_that_ends_no_view_is_kept) {
    static_assert(std::is_same_v<decltype(trim(std::string())), std::string>);
    static_assert(std::is_same_v<decltype(trim(std::declval<std::string const&>())), std::string_view>);
    static_assert(!can_be_split<std::string> && can_be_split<std::string&> && can_be_split<std::string_view> &&
                  can_be_split<char const*>);
    auto const kept = trim("  " + std::string(100, 'x') + " ");
    EXPECT_EQ(kept, std::string(100, 'x'));
}

}  // namespace
}  // namespace muster
