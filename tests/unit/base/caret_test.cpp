#include "base/error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(carets, point_at_the_fault) {
    EXPECT_EQ(render_caret("site.toml", "a = 1\nb = x\n", 10, "no"), "site.toml:2:5: no\n  b = x\n      ^");
    EXPECT_EQ(render_caret("site.toml", "a = x", 4, "no", true), "site.toml:1:5: no\n  a = x\n      ^");
    EXPECT_EQ(render_caret("v", "", 99, "empty", true), "v:1:1: empty\n  \n  ^");
}

TEST(carets, show_no_control_characters_of_the_message_either) {
    EXPECT_EQ(render_caret("v", "x", 0, std::string_view("unit 'a\0\nb'", 11)), "v: unit 'a??b'\n  x\n  ^");
}

TEST(carets, survive_any_bytes) {
    std::string const noise = std::string(500, '\x80') + "\n\0\n" + std::string(300, 'y');
    for (std::size_t i = 0; i < noise.size() + 5; ++i) {
        auto const shown = render_caret("x", noise, i, "m");
        EXPECT_EQ(shown.find('\x80'), std::string::npos);
        EXPECT_LT(shown.size(), 400u);
    }
}

TEST(carets, show_letters_of_any_language) {
    EXPECT_EQ(render_caret("a.csv", "Zürich,x", 8, "no"), "a.csv: no\n  Zürich,x\n         ^") << "below the x";
    EXPECT_EQ(render_caret("a.csv", "Z\xfcrich,x", 7, "no"), "a.csv: no\n  Z?rich,x\n         ^") << "Latin-1";
    EXPECT_EQ(render_caret("a.csv",
                           "a\xc2\x9b"
                           "b",
                           3, "no"),
              "a.csv: no\n  a??b\n     ^")
        << "a terminal's command";
    for (std::size_t at = 0; at < 400; ++at) {
        std::string line;
        while (line.size() < 400) line += "ü";
        auto const shown = render_caret("a.csv", line, at, "no");
        EXPECT_EQ(shown.find('?'), std::string::npos) << at;
    }
}

TEST(carets, name_no_line_of_an_option) {
    EXPECT_EQ(render_caret("--map", "a:x", 2, "no"), "--map: no\n  a:x\n    ^");
    EXPECT_EQ(render_caret("qstat", "a\n", 0, "no"), "qstat: no\n  a\n  ^");
    EXPECT_EQ(render_caret("qstat", "a\nb", 2, "no"), "qstat:2:1: no\n  b\n  ^");
    EXPECT_EQ(render_caret("--map", "", 0, "is empty"), "--map: is empty\n  \n  ^");
}

TEST(carets, parse_errors_name_line_and_column_of_files) {
    EXPECT_STREQ(parse_error("f.toml", "ab", 1, "no", errc::config).what(), "f.toml:1:2: no\n  ab\n   ^");
    EXPECT_STREQ(parse_error("-n", "ab", 1, "no", errc::usage).what(), "-n: no\n  ab\n   ^");
}

}  // namespace
}  // namespace muster
