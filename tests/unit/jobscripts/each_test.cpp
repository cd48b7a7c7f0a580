#include "jobscripts/each.hpp"

#include <gmock/gmock.h>

#include "base/process/run_captured.hpp"

using namespace muster;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::vector<each_parameter> const two{{"lr", {"0.1", "it's $x"}}, {"wd", {"0", "1", ""}}};

std::vector<std::string> names_in(std::string_view word) {
    std::vector<std::string> names;
    for (auto const& at : find_placeholders(word)) names.push_back(std::string(word.substr(at.offset, at.length)));
    return names;
}

}  // namespace

TEST(each, reads_a_list) {
    EXPECT_EQ(read_each("lr=0.1,0.01"), (each_parameter{"lr", {"0.1", "0.01"}}));
    EXPECT_EQ(read_each("net=a\\,b,c,"), (each_parameter{"net", {"a,b", "c", ""}}));
    EXPECT_EQ(read_each("flag=,--amp=1"), (each_parameter{"flag", {"", "--amp=1"}}));
}

TEST(each, tells_faults_and_where) {
    EXPECT_FALSE(find_each_fault("lr=0.1,0.01"));
    EXPECT_EQ(find_each_fault("lr")->offset, 0U);
    EXPECT_EQ(find_each_fault("=1,2")->offset, 0U);
    EXPECT_EQ(find_each_fault("a-b=1,2")->offset, 1U);
    EXPECT_THAT(find_each_fault("index=1,2")->why, HasSubstr("the number of the job in the array"));
    EXPECT_EQ(find_each_fault("lr=1")->offset, 3U);
}

TEST(each, several_make_the_product_and_the_last_changes_fastest) {
    EXPECT_EQ(count_tasks(two), 6U);
    EXPECT_THAT(values_of_task(two, 0), ElementsAre("0.1", "0"));
    EXPECT_THAT(values_of_task(two, 1), ElementsAre("0.1", "1"));
    EXPECT_THAT(values_of_task(two, 3), ElementsAre("it's $x", "0"));
    EXPECT_THAT(values_of_task(two, 5), ElementsAre("it's $x", ""));
    std::vector<std::string> const many(1000, "x");
    EXPECT_EQ(count_tasks({{"a", many}, {"b", many}}), 0U) << "more than an array may have";
    EXPECT_EQ(count_tasks({}), 0U);
}

TEST(each, finds_names_in_braces_only) {
    EXPECT_THAT(names_in("--lr={lr}_{index}"), ElementsAre("{lr}", "{index}"));
    EXPECT_THAT(names_in("${HOME} {} {a b} {\"lr\": 1} {0} {-x}"), ElementsAre());
    EXPECT_THAT(names_in("{{lr}} {{wd}"), ElementsAre("{{lr}}", "{wd}"));
    EXPECT_TRUE(find_placeholders("{{lr}}").front().is_escaped);
    EXPECT_THAT(names_in("{{{lr"), ElementsAre());
}

TEST(each, fills_words) {
    EXPECT_EQ(fill_word("r-{lr}-{wd}-{index}.{{lr}}{other}", two, 1), "r-0.1-1-1.{lr}{other}");
    EXPECT_EQ(fill_word("{lr}{index}{{lr}}", {}, 7), "{lr}7{{lr}}") << "an array without parameters has its number only";
}

TEST(each, bash_gets_the_same_words) {
    std::string script = "set -u\n";
    std::vector<std::string> const words{"a b{lr}c", "{wd}", "it's {index}", "{{lr}}", "${HOME}", "x"};
    for (auto const& line : value_lines(two)) script += line + "\n";
    script += "printf '%s|'";
    for (auto const& word : words) script += " " + quote_task_word(word, two, true);
    for (std::size_t task = 0; task < count_tasks(two); ++task) {
        std::string wanted;
        for (auto const& word : words) wanted += fill_word(word, two, task) + "|";
        environment variables;
        variables.set("MUSTER_ARRAY_INDEX", std::to_string(task));
        EXPECT_EQ(run_captured({"/bin/bash", "-c", script}, variables).out, wanted);
    }
    environment beyond;
    beyond.set("MUSTER_ARRAY_INDEX", "6");
    EXPECT_NE(run_captured({"/bin/bash", "-c", script}, beyond).exit_status, 0) << "a task that the sweep does not have";
}

TEST(each, a_job_without_an_array_gets_its_words_as_they_are) {
    EXPECT_EQ(quote_task_word("{lr}{index}", {}, false), "'{lr}{index}'");
    EXPECT_EQ(quote_task_word("{lr}{index}", {}, true), "'{lr}'\"$MUSTER_ARRAY_INDEX\"");
    EXPECT_EQ(quote_task_word("", {}, true), "''");
}
