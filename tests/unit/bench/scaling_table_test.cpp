#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/error.hpp"
#include "bench/study/scaling_table.hpp"
#include "bench/tools/options.hpp"
#include "tests/unit/bench/sample_study.hpp"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(scaling_rows, are_medians_with_speedup_over_the_smallest_number_of_ranks) {
    auto const rows = scaling_rows(sample_study());
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].ranks, 1);
    EXPECT_EQ(rows[0].median_of("train_s"), 8);
    EXPECT_EQ(rows[0].speedup->value, 1);
    EXPECT_EQ(rows[0].speedup->low, 1);
    EXPECT_EQ(rows[1].median_of("train_s"), 4.5);
    EXPECT_DOUBLE_EQ(rows[1].speedup->value, 8 / 4.5);
    EXPECT_DOUBLE_EQ(rows[1].efficiency, 8 / 4.5 / 2);
    EXPECT_DOUBLE_EQ(rows[1].speedup->low, 7.5 / 5.0);
    EXPECT_DOUBLE_EQ(rows[1].speedup->high, 8.5 / 4.0);
    EXPECT_FALSE(rows[1].oversubscribed);
    EXPECT_TRUE(rows[2].oversubscribed);
    EXPECT_EQ(rows[0].median_of("accuracy"), 0.75);
    EXPECT_DOUBLE_EQ(rows[0].median_of("compute_s"), 8 - 0.125 - 0.03125);
}

TEST(scaling_rows, whose_base_is_not_one_rank) {
    auto s = sample_study();
    std::erase_if(s.runs, [](auto const& r) { return r.ranks == 1; });
    auto const rows = scaling_rows(s);
    EXPECT_EQ(rows[0].speedup->value, 1);
    EXPECT_EQ(rows[0].efficiency, 1);
    EXPECT_DOUBLE_EQ(rows[1].speedup->value, 4.5 / 5);
    EXPECT_TRUE(rows[1].speedup->within_spread) << "4 to 5 s against 4.5 to 5.5 s";
    EXPECT_DOUBLE_EQ(rows[1].efficiency, 4.5 / 5 / 2);
    EXPECT_THAT(scaling_text(s), HasSubstr("speed-up against 2 ranks (train_s 4.50 s)"));
}

TEST(scaling_text, says_what_is_oversubscribed_and_what_the_base_is) {
    auto const text = scaling_text(sample_study());
    EXPECT_THAT(text, HasSubstr("oversubscribed: 4 ranks on 2 cores"));
    EXPECT_THAT(text, HasSubstr("7.50 to 8.50 (range)"));
    EXPECT_THAT(text, HasSubstr("medians of 3 runs each; a range is smallest to largest, an interval needs 6 runs\n"
                                "speed-up against 1 rank (train_s 8.00 s)"));
    EXPECT_THAT(text, HasSubstr("1.78"));
    EXPECT_THAT(text, HasSubstr("89%"));
    EXPECT_THAT(text, HasSubstr("0.750"));
}

TEST(scaling_rows, of_a_weak_series_and_of_a_rate) {
    auto s = plain_study({1, 2}, {{10, 10, 10, 10, 10, 10}, {12, 12, 12, 12, 12, 12.5}});
    s.plan.series = work_series::weak;
    auto rows = scaling_rows(s);
    EXPECT_DOUBLE_EQ(rows[1].speedup->value, 2 * 10 / 12.0) << "twice the work in 12 s";
    EXPECT_DOUBLE_EQ(rows[1].efficiency, 10 / 12.0);
    for (auto& run : s.runs) run.metrics = {{"rate", "1/s", 0, {1.0, 100.0 * run.ranks - 10 * (run.ranks - 1)}}};
    s.plan.judged = {"rate", true};
    rows = scaling_rows(s);
    EXPECT_DOUBLE_EQ(rows[1].speedup->value, 1.9) << "a rate is of the work done, whatever the series";
    EXPECT_EQ(rows[1].metrics.front().name, "rate");
    EXPECT_EQ(rows[1].metrics.back().name, "wall_s");
}

TEST(scaling_rows, count_only_runs_that_ended_well) {
    auto s = plain_study({1, 2, 4}, {{10, 11, 12}, {6, 5, 4}, {1, 1, 1}});
    s.runs[0].warmup = true;
    s.runs[3].status = run_status::failed;
    s.runs[3].reason = "exit code 3";
    s.runs[4].status = run_status::interrupted;
    for (std::size_t i : {6u, 7u, 8u}) {
        s.runs[i].status = run_status::timed_out;
        s.runs[i].reason = "took longer than 1 s";
    }
    auto const rows = scaling_rows(s);
    EXPECT_EQ(rows[0].runs, 2u);
    EXPECT_EQ(rows[0].median_of("wall_s"), 11.5);
    EXPECT_EQ(rows[1].runs, 1u);
    EXPECT_EQ(rows[1].failed, 1u);
    EXPECT_DOUBLE_EQ(rows[1].speedup->value, 11.5 / 4);
    EXPECT_EQ(rows[2].runs, 0u);
    EXPECT_FALSE(rows[2].speedup);
    auto const text = scaling_text(s);
    EXPECT_THAT(text, HasSubstr("1 of 2 failed: exit code 3"));
    EXPECT_THAT(text, HasSubstr("failed: took longer than 1 s"));
}

TEST(scaling_rows, whose_base_failed_have_the_next_as_base) {
    auto s = plain_study({1, 2, 4}, {{1}, {6}, {3}});
    s.runs[0].status = run_status::failed;
    auto const rows = scaling_rows(s);
    EXPECT_FALSE(rows[0].speedup);
    EXPECT_EQ(rows[1].speedup->value, 1);
    EXPECT_EQ(rows[2].speedup->value, 2);
    EXPECT_EQ(rows[2].efficiency, 1);
}

TEST(scaling_text, prints_no_ratio_that_the_spread_swallows) {
    auto const text = scaling_text(plain_study({1, 2}, {{10, 11, 12}, {9, 10.5, 12}}));
    EXPECT_THAT(text, HasSubstr("within the spread"));
    EXPECT_THAT(text, Not(HasSubstr("1.05")));
    EXPECT_THAT(scaling_text(plain_study({1, 2}, {{10, 11, 12}, {6, 6.5, 7}})), HasSubstr("1.69"));
}

TEST(scaling_text, calls_an_interval_so_from_six_runs_on) {
    EXPECT_THAT(scaling_text(plain_study({1}, {{1, 2, 3, 4, 5}})), HasSubstr("1.00 to 5.00 (range)"));
    EXPECT_THAT(scaling_text(plain_study({1}, {{1, 2, 3, 4, 5, 6}})), HasSubstr("1.00 to 6.00 (97% CI)"));
    EXPECT_THAT(scaling_text(plain_study({1}, {{1}})), HasSubstr("one run"));
}

TEST(scaling_text, says_that_the_machine_was_busy_and_that_several_ranks_told) {
    auto s = plain_study({1, 2}, {{4}, {2}});
    EXPECT_THAT(scaling_text(s), Not(HasSubstr("busy")));
    s.load = {8.9, 2, 1.9, {}, {{"cc1plus", 17, 0.98}}};
    s.runs[1].load = {8.9, 8, 0, 1.5, {}};
    for (int const rank : {1, 0}) s.runs[1].metrics.push_back({"step_s", "s", rank, {1.0 + rank}});
    s.runs[0].metrics = {{"step_s", "s", 0, {2}}};
    s.plan.judged = {"step_s", false};
    auto const text = scaling_text(s);
    EXPECT_THAT(text, HasSubstr("busy: others used up to 1.5 CPUs"));
    EXPECT_THAT(text, HasSubstr("busy: other programs used 1.9 of 2 CPUs (cc1plus 0.98; load average 8.9) before\n"
                                "the runs; these figures mean little"));
    EXPECT_THAT(text, HasSubstr("several ranks printed step_s: the lowest rank's counts"));
    EXPECT_THAT(text, HasSubstr("2.00")) << "rank 0 told 1 s";
    EXPECT_THAT(text, HasSubstr("--take\nstep_s=last,mean"));
    s.plan.choices = {{"step_s", "sum", "rank"}};
    EXPECT_THAT(scaling_text(s), HasSubstr("--take\nstep_s=sum,mean"));
    s.plan.choices = {{"step_s", "last", "sum"}};
    EXPECT_DOUBLE_EQ(scaling_rows(s)[1].median_of("step_s"), 3);
}

std::size_t widest_line(std::string const& text) {
    std::size_t widest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
}

TEST(scaling_text, fits_a_terminal_of_80_columns) {
    auto s = sample_study();
    EXPECT_LE(widest_line(scaling_text(s)), 80u);
    for (auto& run : s.runs) {
        run.nodes = run.ranks;
        run.load = {99, 8, 7, 7, {}};
        for (auto& metric : run.metrics)
            for (auto& value : metric.values) value *= 12345.678;
    }
    s.runs[4].status = run_status::failed;
    s.runs[4].reason = "exit code 3, and more words about it than any terminal has in a line";
    s.plan.judged = {"published_with_startup_s", false};
    EXPECT_LE(widest_line(scaling_text(s)), 80u);
    study many;
    many.plan.ranks = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
    for (int const ranks : many.plan.ranks) {
        many.runs.push_back(sample_run(1, 0, 1e5 / ranks));
        many.runs.back().ranks = ranks;
    }
    auto const text = scaling_text(many);
    EXPECT_LE(widest_line(text), 80u);
    for (auto const* wanted : {"2048", "published_with_startup_s", "allreduce_wait_s"}) EXPECT_THAT(text, HasSubstr(wanted));
}

TEST(scaling_text, says_that_runs_are_missing) {
    auto s = plain_study({1, 2, 4}, {{4, 4, 4}, {2, 2, 2}, {1, 1, 1}});
    EXPECT_THAT(scaling_text(s), Not(HasSubstr("unfinished")));
    s.runs.resize(7);
    s.runs.back().status = run_status::interrupted;
    EXPECT_THAT(scaling_text(s), HasSubstr("unfinished: 6 of 9 runs were made (4 ranks: 0 of 3)"));
    EXPECT_THAT(without_tags(page_of(s)), HasSubstr("6 of 9 runs were made"));
    s.runs.pop_back();
    EXPECT_THAT(scaling_text(s), HasSubstr("unfinished: 6 of 9 runs were made (4 ranks: 0 of 3)"));
}

TEST(scaling_text, names_outliers_and_efficiency_beyond_one) {
    auto s = plain_study({1, 4}, {{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}});
    s.plan.judged = {"rate", true};
    double const base[]{44.5, 228, 240, 250, 266}, four[]{1000, 1010, 1050, 1060, 1070};
    for (auto& run : s.runs)
        run.metrics = {{"rate", "images/s", 0, {run.ranks == 1 ? base[run.repetition] : four[run.repetition]}}};
    auto const text = scaling_text(s);
    EXPECT_THAT(text, HasSubstr("1 rank: repeat 1 is an outlier: 44.5 against a median of 240"));
    EXPECT_THAT(text, Not(HasSubstr("4 ranks: repeat"))) << "3% is no outlier";
    EXPECT_THAT(text, HasSubstr("4 ranks: more than 100% efficiency"));
    EXPECT_THAT(without_tags(page_of(s)), HasSubstr("an outlier"));
}

TEST(scaling_text, without_the_judged_metric_says_what_to_print) {
    auto s = plain_study({1, 2}, {{4}, {2}});
    s.plan.judged = {"loss", false};
    EXPECT_THAT(scaling_text(s), HasSubstr("no run printed the metric loss"));
}

TEST(format_value, has_three_digits) {
    EXPECT_EQ(format_value(0), "0");
    EXPECT_EQ(format_value(0.012345), "0.0123");
    EXPECT_EQ(format_value(1.2345), "1.23");
    EXPECT_EQ(format_value(12.345), "12.3");
    EXPECT_EQ(format_value(59936), "59936");
}

TEST(parse_list, of_ranks) {
    EXPECT_EQ(parse_list("1,2,4", "--ranks", 1, 8), (std::vector{1, 2, 4}));
    EXPECT_EQ(parse_list(" 3 ", "--ranks", 1, 8), (std::vector{3}));
    for (auto const* bad : {"", "1,,2", "0", "9", "1,x", "1;2", "-1", "99999999999999999999"}) {
        try {
            parse_list(bad, "--ranks", 1, 8);
            ADD_FAILURE() << bad;
        } catch (parse_error const& e) {
            EXPECT_EQ(e.code(), errc::usage);
            EXPECT_THAT(e.what(), HasSubstr("--ranks: expected whole numbers from 1 to 8"));
        }
    }
}

}  // namespace
}  // namespace muster
