#include "bench/study/metric_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "bench/study/placeholders.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<metric_series> told(std::string_view text, std::vector<metric_pattern> const& patterns = {}) {
    metric_reader reader(patterns);
    reader.add(text);
    reader.finish();
    return reader.metrics();
}

std::string fault_in(std::string_view text) {
    metric_reader reader({});
    reader.add(text);
    reader.finish();
    return reader.fault();
}

template <class function>
std::string message_of(function run) {
    try {
        run();
    } catch (error const& e) {
        return e.what();
    }
    return "no error";
}

TEST(metric_reader, reads_lines_of_all_ranks_in_their_order) {
    EXPECT_THAT(told("hello\n[a:0] muster-metric: loss 0.5\n[a:1] muster-metric: loss 0.75\n"
                     "[a:0] INFO muster-metric: rate 1e3 images/s\n[a:0] muster-metric: loss 0.25"),
                ElementsAre(metric_series{"loss", "", 0, {0.5, 0.25}}, metric_series{"loss", "", 1, {0.75}},
                            metric_series{"rate", "images/s", 0, {1000}}));
    EXPECT_THAT(told("muster-metric: x -1.5 s\n"), ElementsAre(metric_series{"x", "s", -1, {-1.5}}));
}

TEST(metric_reader, takes_output_however_it_is_divided) {
    metric_reader reader({});
    for (char const c : std::string_view("50%\r100% muster-metric: a 1 s\rmuster-metric: a 2 s\n")) reader.add({&c, 1});
    EXPECT_THAT(reader.metrics(), ElementsAre(metric_series{"a", "s", -1, {1, 2}}));
}

TEST(metric_reader, finds_what_patterns_match) {
    auto const out = told("[n:2] step 3 loss=0.125 in 7 ms\nloss=nothing\n",
                          {parse_metric_pattern("loss=loss=([0-9.]+)"), parse_metric_pattern("step_ms:ms=\\d+(?= ms)")});
    EXPECT_THAT(out, ElementsAre(metric_series{"loss", "", 2, {0.125}}, metric_series{"step_ms", "ms", 2, {7}}));
}

TEST(metric_reader, says_which_line_is_no_metric) {
    EXPECT_THAT(fault_in("muster-metric: a\n"), HasSubstr("'muster-metric: a' is not NAME VALUE [UNIT]"));
    EXPECT_THAT(fault_in("muster-metric: a b\n"), HasSubstr("has a value that is no number"));
    EXPECT_THAT(fault_in("muster-metric: a nan\n"), HasSubstr("no"));
    EXPECT_THAT(fault_in("muster-metric: a[0] 1\n"), HasSubstr("has a name"));
    EXPECT_THAT(fault_in("muster-metric: a 1 s extra\n"), HasSubstr("is not NAME VALUE [UNIT]"));
    EXPECT_THAT(fault_in("muster-metric: a 1 s\nmuster-metric: a 1 ms\n"), HasSubstr("has the unit 'ms', and had 's'"));
    EXPECT_THAT(fault_in("muster-metric: a 1 s\nno metric here: 5\n"), IsEmpty());
    EXPECT_THAT(fault_in("muster-metric: " + std::string(100'000, 'a') + " 1\n"), HasSubstr("is longer than a line may be"));
}

TEST(metric_reader, takes_long_lines_without_falling_over) {
    EXPECT_THAT(told(std::string(1'000'000, 'a') + "\nmuster-metric: b 1\n", {parse_metric_pattern("x=(a|b)*c([0-9])")}),
                ElementsAre(metric_series{"b", "", -1, {1}}));
}

TEST(read_metric_lines, takes_metrics_and_any_objects) {
    EXPECT_THAT(read_metric_lines("{\"metric\": \"loss\", \"value\": 0.5, \"unit\": \"nats\"}\n\n"
                                  "{\"epoch\": 1, \"loss2\": 0.25, \"note\": \"x\"}\n{\"epoch\": 2, \"los",
                                  "f"),
                ElementsAre(metric_series{"loss", "nats", -1, {0.5}}, metric_series{"epoch", "", -1, {1}},
                            metric_series{"loss2", "", -1, {0.25}}));
    EXPECT_THAT(message_of([] { read_metric_lines("{}\n[1]\n", "f.jsonl"); }), HasSubstr("f.jsonl, line 2: /: is array"));
    EXPECT_THAT(message_of([] { read_metric_lines("{\"a\": }\n", "f.jsonl"); }), HasSubstr("f.jsonl, line 1"));
}

TEST(parse_metric_pattern, shows_what_is_wrong) {
    EXPECT_THAT(message_of([] { parse_metric_pattern("loss"); }), HasSubstr("write NAME=REGEX"));
    EXPECT_THAT(message_of([] { parse_metric_pattern("a b=1"); }), HasSubstr("expected a name"));
    EXPECT_THAT(message_of([] { parse_metric_pattern("a=("); }), HasSubstr("is no regular expression"));
}

TEST(chosen_value, is_of_the_lowest_rank_unless_said) {
    metric_series const one{"x", "", 1, {4, 2}}, zero{"x", "", 0, {1, 3, 8}};
    auto const value = [&](char const* text) { return chosen_value({&one, &zero}, parse_metric_choice(text)); };
    EXPECT_EQ(chosen_value({&one, &zero}, {"x"}), 8);
    EXPECT_EQ(value("x=first"), 1);
    EXPECT_EQ(value("x=mean"), 4);
    EXPECT_EQ(value("x=median"), 3);
    EXPECT_EQ(value("x=last,sum"), 10);
    EXPECT_EQ(value("x=max,min"), 4);
    EXPECT_EQ(value("x=sum,mean"), 9);
    EXPECT_THAT(message_of([] { parse_metric_choice("x=lats"); }), HasSubstr("did you mean last?"));
    EXPECT_THAT(message_of([] { parse_metric_choice("x=last,rnk"); }), HasSubstr("did you mean rank?"));
}

TEST(fill_placeholders, puts_in_the_numbers_of_the_run) {
    run_numbers const numbers{4, 2, 3, 64};
    EXPECT_THAT(fill_placeholders({"-n{ranks}x{nodes}", "{repeat}", "b={batch}", "{{ranks}", "}"}, numbers),
                ElementsAre("-n4x2", "3", "b=64", "{ranks}", "}"));
    EXPECT_THAT(message_of([&] { fill_placeholders("{rank}", numbers); }), HasSubstr("did you mean {ranks}?"));
    EXPECT_THAT(message_of([&] { fill_placeholders("a{", numbers); }), HasSubstr("write {{ for a brace"));
    EXPECT_THAT(message_of([] { fill_placeholders("{batch}", {1, 1, 0, {}}); }), HasSubstr("give --batch N"));
}

}  // namespace
}  // namespace muster
