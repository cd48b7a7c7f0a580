#include "base/text_table.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(tables, line_up) {
    text_table t({"a", "long"});
    t.add({"größer", "x"});
    EXPECT_EQ(t.text(), "a       long\ngrößer  x\n");
}

TEST(text_tables, fit_a_width_where_words_allow) {
    text_table t({"what", "found", "do"});
    t.add({"driver", "no NVIDIA driver here, as on most laptops", "install or load it"});
    EXPECT_EQ(t.text(),
              "what    found                                      do\n"
              "driver  no NVIDIA driver here, as on most laptops  install or load it\n");
    EXPECT_EQ(t.text(50),
              "what    found                   do\n"
              "driver  no NVIDIA driver here,  install or load it\n"
              "        as on most laptops\n");
    text_table narrow({"a", "b"});
    narrow.add({"a_word_wider_than_that", "x y"});
    EXPECT_EQ(narrow.text(10), "a             b\na_word_wider_than_that  x y\n");
}

TEST(align_columns, sets_numbers_right_and_text_left) {
    EXPECT_EQ(align_columns({{"n", "what"}, {"1", "a"}, {"10", "bcdef"}}), " n  what\n 1  a\n10  bcdef\n");
    EXPECT_EQ(align_columns({{"µ", "x"}, {"aé", "y"}}), "µ   x\naé  y\n");
}

}  // namespace
}  // namespace muster
