#include "launch/elastic/lives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(life_number, counts_links_and_restarts_and_never_goes_back) {
    using former = std::vector<program_life>;
    EXPECT_EQ(life_number(former{}, 0, 0), 0) << "no chain, no scheduler";
    EXPECT_EQ(life_number(former{}, 1, 0), 0);
    EXPECT_EQ(life_number(former{}, 3, 0), 2);
    EXPECT_EQ(life_number(former{}, 0, 2), 2);
    EXPECT_EQ(life_number(former{}, 2, 1), 2);
    EXPECT_EQ(life_number(former{{.number = 0}}, 0, 1), 1);
    EXPECT_EQ(life_number(former{{.number = 0}, {.number = 4}}, 2, 0), 5) << "with its generations the first job had five lives";
    EXPECT_EQ(life_number(former{{.number = 0}}, 4, 0), 3) << "jobs of the chain that never began";
    EXPECT_EQ(life_number(former{}, -1, -1), 0);
}

TEST(find_standstill, the_surest_sign_decides) {
    using enum progress_signs::ending;
    using measured = progress_signs::measured;
    auto const of = [](progress_signs const& signs) { return find_standstill(signs, true); };
    EXPECT_THAT(of({.code = 0}), IsEmpty());
    EXPECT_THAT(of({.code = 0, .must_grow = "log"}), IsEmpty()) << "it is done";
    EXPECT_THAT(of({.code = 75, .ended = saved}), IsEmpty());
    EXPECT_EQ(of({.code = 75, .ended = saved, .must_grow = "log"}), "log has not grown (--must-grow)");
    EXPECT_THAT(of({.code = 3, .must_grow = "log", .grew = true}), IsEmpty());
    EXPECT_THAT(of({.code = 75, .ended = saved, .metric = measured::before}), IsEmpty())
        << "the epoch may be longer than the job";
    EXPECT_EQ(of({.code = 3, .metric = measured::before}), "no line with muster-metric: was written");
    EXPECT_THAT(of({.code = 137, .ended = from_outside, .metric = measured::before}), IsEmpty());
    EXPECT_THAT(of({.code = 3, .metric = measured::now}), IsEmpty());
    EXPECT_THAT(of({.code = 3, .lived = duration(2), .metric = measured::before, .saved_further = true}), IsEmpty());
    EXPECT_EQ(of({.code = 3, .must_grow = "log", .saved_further = true}), "log has not grown (--must-grow)");
    EXPECT_EQ(of({.code = 3, .lived = duration(2)}), "it ended with code 3 after 2 s");
    EXPECT_THAT(of({.code = 3, .lived = duration(61)}), IsEmpty()) << "it may have come far";
    EXPECT_THAT(of({.code = 143, .ended = from_outside, .lived = duration(2)}), IsEmpty());
    EXPECT_THAT(of({.code = 143, .ended = from_outside, .must_grow = "log"}), IsEmpty());
    EXPECT_THAT(find_standstill({.code = 3, .lived = duration(2)}, false), IsEmpty())
        << "restarts judge equal failures by themselves";
}

TEST(why_no_more, two_in_a_row_without_progress_are_the_last) {
    auto const idle = [](int n) {
        return program_life{
            .number = n, .job = std::to_string(70 + n), .code = 3, .standstill = "it ended with code 3 after 2 s"};
    };
    auto const good = [](int n) { return program_life{.number = n, .job = std::to_string(70 + n), .code = 75}; };
    auto const cut = [](int n) { return program_life{.number = n, .job = std::to_string(70 + n)}; };
    using lives = std::vector<program_life>;
    EXPECT_EQ(why_no_more(lives{good(0), idle(1), idle(2)}),
              "life 1 (job 71) and life 2 (job 72) made no progress: it ended with code 3 after 2 s");
    for (auto const& may :
         {lives{}, lives{idle(0)}, lives{good(0), idle(1)}, lives{idle(0), good(1)}, lives{idle(0), idle(1), good(2)},
          lives{idle(0), good(1), idle(2)}, lives{idle(0), cut(1)}, lives{idle(0), cut(1), idle(2)}})
        EXPECT_THAT(why_no_more(may), IsEmpty());
    EXPECT_THAT(why_no_more(lives{{.number = 0, .standstill = "x"}, {.number = 1, .standstill = "x"}}),
                HasSubstr("life 0 and life 1 made"));
}

TEST(parse_lives, what_is_written_is_read_again) {
    program_life const first{.number = 0, .job = "12", .code = 75, .measured = true, .saved_step = 12};
    program_life const second{.number = 2, .job = "1\"3", .code = 3, .standstill = "log has not grown (--must-grow)"};
    auto const text = began_line(first, 0) + ended_line(first) + began_line({.number = 1, .job = "1\"3"}, 0) +
                      began_line(second, 1) + ended_line(second);
    EXPECT_THAT(parse_lives(text), ElementsAre(first, second)) << "a later generation is no life of its own";
    EXPECT_THAT(parse_lives(""), IsEmpty());
    EXPECT_THAT(parse_lives(began_line(first, -1)), ElementsAre(program_life{.number = 0, .job = "12"}));
    auto const damaged = began_line(first, 0) + "{\"life\":0,\"co" + "\n[]\n{\"life\":\"x\"}\n{}\nnull\n" + ended_line(first);
    EXPECT_THAT(parse_lives(damaged), ElementsAre(first));
    EXPECT_THAT(parse_lives(ended_line(second)), testing::SizeIs(1)) << "its beginning was lost";
}

}  // namespace
}  // namespace muster
