#include "jobscripts/quote.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(bash_quote, plain_words_stay_and_others_are_quoted) {
    EXPECT_EQ(bash_quote("train.py"), "train.py");
    EXPECT_EQ(bash_quote("a b"), "'a b'");
    EXPECT_EQ(bash_quote(""), "''");
    EXPECT_EQ(bash_quote("it's"), R"('it'\''s')");
    EXPECT_EQ(bash_quote("$(id)"), "'$(id)'");
    EXPECT_EQ(bash_quote("gr\xc3\xbc\xc3\x9f"), "'gr\xc3\xbc\xc3\x9f'");
}

TEST(bash_quote, control_characters_do_not_reach_the_script) {
    EXPECT_EQ(bash_quote("a\nb"), R"($'a\nb')");
    EXPECT_EQ(bash_quote("a\r\n#SBATCH --account=x"), R"($'a\015\n#SBATCH --account=x')");
    EXPECT_EQ(bash_quote("\t1'\\"), R"($'\0111\'\\')");
    EXPECT_EQ(bash_quote("\x7f\xff"), R"($'\177\377')");
}

TEST(bash_quote, a_nul_byte_is_refused) {
    EXPECT_THROW(bash_quote(std::string_view("a\0b", 3)), error);
    EXPECT_THROW(bash_quote(std::string_view("a\n\0b", 4)), error);
}

TEST(directive_value, what_schedulers_need_passes) {
    EXPECT_EQ(directive_value("account", "m1234_g", directive_text::name), "m1234_g");
    EXPECT_EQ(directive_value("queue", "debug-scaling", directive_text::name), "debug-scaling");
    EXPECT_EQ(directive_value("constraint", "gpu&hbm80g", directive_text::expression), "gpu&hbm80g");
    EXPECT_EQ(directive_value("constraint", "[rack1*2&rack2*4]", directive_text::expression), "[rack1*2&rack2*4]");
    EXPECT_EQ(directive_value("filesystems", "home:eagle", directive_text::resource), "home:eagle");
    EXPECT_EQ(directive_value("directive", "-l place=scatter", directive_text::directive), "-l place=scatter");
}

TEST(directive_value, anything_that_could_end_it_is_refused) {
    for (std::string_view const bad :
         {"",     "a b", "a\nb", "a\n#SBATCH --uid=0", "a\rb", "a\tb", "$(id)",      "`id`", "a;b", "a'b",
          "a\"b", "a#b", "-a",   "--wrap=x",           "a\\b", "a,b",  "gr\xc3\xbc", "a/b",  "a=b", "%j"})
        EXPECT_THROW(directive_value("account", bad, directive_text::name), error) << bad;
    EXPECT_THROW(directive_value("account", std::string_view("a\0", 2), directive_text::name), error);
    EXPECT_THROW(directive_value("account", std::string(257, 'a'), directive_text::name), error);
    for (std::string_view const bad : {"r y", "-r  y", "-r y ", "-r y\n#PBS -q x", "-r $(id)", "-r 'y'"})
        EXPECT_THROW(directive_value("directive", bad, directive_text::directive), error) << bad;
    for (std::string_view const bad : {"gpu gpu", "gpu;id", "gpu\n", "&gpu", "gpu$x"})
        EXPECT_THROW(directive_value("constraint", bad, directive_text::expression), error) << bad;
}

TEST(directive_value, the_error_names_the_value_and_the_place) {
    try {
        directive_value("account", "my proj", directive_text::name);
        FAIL();
    } catch (parse_error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("account: only letters"));
        EXPECT_THAT(e.what(), HasSubstr("my proj"));
        EXPECT_EQ(exit_code(e.code()), 2);
    }
}

TEST(variable_name, only_names) {
    EXPECT_EQ(variable_name("NCCL_NET"), "NCCL_NET");
    for (std::string_view const bad : {"", "1A", "A B", "A=B", "A;id", "A\n", "\xc3\xbc"})
        EXPECT_THROW(variable_name(bad), error) << bad;
}

}  // namespace
}  // namespace muster
