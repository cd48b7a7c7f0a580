#include "base/command/help_page.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(help_page, leaves_lines_that_fit) {
    constexpr auto text = "tool convert FILE      make a file\n\n  tool convert a -o b\n\n  -o, --output FILE  the file\n";
    EXPECT_EQ(fold_help(text, 40), text);
    EXPECT_EQ(fold_help("", 40), "");
}

TEST(help_page, keeps_the_column_of_options) {
    EXPECT_EQ(fold_help("  -o, --output FILE  the file\n  -c, --chunk N      number of images in each chunk of it\n", 44),
              "  -o, --output FILE  the file\n"
              "  -c, --chunk N     number of images in each\n"
              "                    chunk of it\n");
    EXPECT_EQ(fold_help("  -o FILE  the file\n  --a-very-long-option-name VALUE  what it does, in many words\n", 50),
              "  -o FILE  the file\n"
              "  --a-very-long-option-name VALUE\n"
              "           what it does, in many words\n");
}

TEST(help_page, fills_a_paragraph_anew) {
    EXPECT_EQ(fold_help("one two three four five six seven eight\nnine ten\n\nnext\n", 20),
              "one two three four\nfive six seven eight\nnine ten\n\nnext\n");
}

TEST(help_page, examples_stay_commands) {
    EXPECT_EQ(fold_help("  tool convert --images a.gz --labels b.gz -o c.h5\n", 40),
              "  tool convert --images a.gz --labels \\\n      b.gz -o c.h5\n");
    EXPECT_EQ(fold_help("  tool convert a -o b     and what it does, for whom\n", 50),
              "  tool convert a -o b     and what it does, for\n                          whom\n");
}

TEST(help_page, divides_usage_and_words_without_room) {
    EXPECT_EQ(fold_help("tool convert [--from FORMAT] [--to FORMAT] FILE      make a file\n", 40),
              "tool convert [--from FORMAT] [--to\n             FORMAT] FILE\n  make a file\n");
    EXPECT_EQ(fold_help("  --how WHAT  one|two|three|four|five|six|seven|eight|nine\n", 40),
              "  --how WHAT  one|two|three|four|five|\n              six|seven|eight|nine\n");
    EXPECT_EQ(fold_help("über öä übeR\n", 12), "über öä übeR\n") << "letters, not bytes";
}

TEST(help_page, width_is_that_of_COLUMNS) {
    EXPECT_EQ(help_width({{"COLUMNS", "66"}}), 66u);
    EXPECT_GT(help_width({}), 0u);
}

}  // namespace
}  // namespace muster
