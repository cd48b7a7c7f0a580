#include "base/manual/roff.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(roff, quotes_what_troff_would_obey) {
    EXPECT_EQ(roff_quote(".a\n'b\\c-…ß"), "\\&.a\n\\&\\(aqb\\ec\\-\\&...\\[u00DF]");
    EXPECT_EQ(roff_quote("\xe2\x80"), "\\[uFFFD]\\[uFFFD]");
    EXPECT_EQ(roff_paragraphs("a\n\nb"), "a\n.PP\nb\n");
}

TEST(roff, of_markdown_paragraphs_and_spans) {
    EXPECT_EQ(roff_of_markdown("one `--two`\n**three** *four* [five](six.md#x).\n\n.seven"),
              "one \\fB\\-\\-two\\fR\n\\fBthree\\fR \\fIfour\\fR five\\&.\n.PP\n\\&.seven\n");
    EXPECT_EQ(roff_of_markdown("2 * 3 and a [b] and `c"), "2 * 3 and a [b] and \\(gac\n");
}

TEST(roff, of_markdown_headings_and_comments) {
    EXPECT_EQ(roff_of_markdown("### A b\n<!-- page: x -->\n\ntext\n\nmore\n#### C\n"),
              ".SS \"A b\"\ntext\n.PP\nmore\n.SS \"C\"\n");
}

TEST(roff, of_markdown_tables) {
    EXPECT_EQ(
        roff_of_markdown("Before:\n\n| Name | Value | Yours |\n|---|---|---|\n| `A`, `B` | one | kept |\n| C |  |  |\n\nbehind"),
        "Before:\n.TP\n\\fBA\\fR, \\fBB\\fR\none. Yours: kept.\n.TP\nC\n.PP\nbehind\n");
}

TEST(roff, of_markdown_lists_and_code) {
    EXPECT_EQ(roff_of_markdown("- one\n  more\n- two\n\n```sh\n.x -n\n\n```\n"),
              ".IP \\(bu 2\none\nmore\n.IP \\(bu 2\ntwo\n.PP\n.EX\n\\&.x \\-n\n\n.EE\n");
}

}  // namespace
}  // namespace muster
