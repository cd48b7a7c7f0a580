#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "bench/scaling/plot.hpp"
#include "bench/scaling/report_html.hpp"
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
    EXPECT_DOUBLE_EQ(rows[0].median_of("compute_s"), 8 - 0.0625 - 0.125 - 0.03125);
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
    EXPECT_THAT(text,
                HasSubstr("medians of 3 runs each; a range is smallest to largest, an interval needs 6 runs; speed-up against "
                          "1 rank (train_s 8.00 s)"));
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
    EXPECT_THAT(
        text, HasSubstr("busy: other programs used 1.9 of 2 CPUs (cc1plus 0.98; load average 8.9) before the runs; these figures "
                        "mean little"));
    EXPECT_THAT(text, HasSubstr("several ranks told step_s: the lowest rank's counts"));
    EXPECT_THAT(text, HasSubstr("2.00")) << "rank 0 told 1 s";
    s.plan.choices = {{"step_s", "last", "sum"}};
    EXPECT_DOUBLE_EQ(scaling_rows(s)[1].median_of("step_s"), 3);
}

TEST(scaling_text, without_the_judged_metric_says_what_to_print) {
    auto s = plain_study({1, 2}, {{4}, {2}});
    s.plan.judged = {"loss", false};
    EXPECT_THAT(scaling_text(s), HasSubstr("no run told the metric loss"));
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

report_plots const plots{"<svg id=\"a\"></svg>", "<svg id=\"b\"></svg>", "<svg id=\"c\"></svg>", "<svg id=\"d\"></svg>"};

// Everything that comes from outside is hostile here; none of it may become markup.
TEST(report_html, escapes_everything) {
    auto s = sample_study();
    std::string const evil = "<script>alert(\"x\")</script>&'";
    for (auto* text : {&s.created, &s.command, &s.launch_command, &s.machine.host, &s.machine.processor, &s.machine.governor,
                       &s.machine.system, &s.machine.kernel, &s.machine.compiler, &s.machine.gpus, &s.name, &s.version,
                       &s.scheduler, &s.folder})
        *text = evil;
    s.variables = {{evil, evil}};
    s.load = {9, 2, 2, {}, {{evil, 1, 1}}};
    for (auto& point : s.points)
        for (auto& place : point.places) place.host = place.cpus = place.gpu = evil;
    for (auto& run : s.runs) {
        run.started = run.output = evil;
        run.metrics.push_back({evil, evil, 0, {1}});
        for (auto* text : {&run.train->data, &run.train->kernels, &run.train->backend, &run.train->identity_source,
                           &run.train->version, &run.train->mpi_library, &run.train->protocol, &run.train->weights_checksum})
            *text = evil;
        for (auto& p : run.train->ranks) p.host = p.cores = evil;
    }
    auto const page = report_html(s, plots);
    EXPECT_THAT(page, Not(HasSubstr("<script")));
    EXPECT_THAT(page, Not(HasSubstr("alert(\"")));
    EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
    EXPECT_THAT(page, HasSubstr("<svg id=\"b\"></svg>")) << "plots are taken as they are";
}

TEST(report_html, needs_no_network_and_holds_what_it_must) {
    auto const page = report_html(sample_study(), plots);
    for (auto const* forbidden : {"http://", "https://", "<script", "<link", "@import", "url(", "src="})
        EXPECT_THAT(page, Not(HasSubstr(forbidden)));
    for (auto const* wanted : {"Published, 2020, A100s: not like for like", "499.8", "8.97", "oversubscribed: 4 ranks on 2 cores",
                               "speed-up", "Some Processor", "GCC 12.2.0", "Open MPI v4.1.4", "7.50 to 8.50 (range)",
                               "What the numbers mean", "0=0 1=1", "Hits over all images of the test split"})
        EXPECT_THAT(page, HasSubstr(wanted));
    EXPECT_THAT(page, Not(HasSubstr("{{"))) << "every field of the template was filled";
}

TEST(report_html, of_another_program_has_nothing_of_the_training) {
    auto s = plain_study({1, 2}, {{4, 5, 6}, {2, 2.5, 3}});
    s.plan.program = {"./train.py", "<b>"};
    s.runs[0].status = run_status::failed;
    s.runs[0].reason = "exit code <3>";
    s.load = {9, 8, 4, {}, {{"<script>", 1, 1}}};
    auto const page = report_html(s, {"<svg id=\"a\"></svg>", "<svg id=\"b\"></svg>", "", ""});
    for (auto const* wanted :
         {"Scaling of train.py", "exit code &lt;3&gt;", "2.20", "A busy machine", "of 6 runs failed", "&lt;b&gt;"})
        EXPECT_THAT(page, HasSubstr(wanted));
    for (auto const* unwanted : {"ublished", "MNIST", "loader", "images", "<script", "<b>'", "{{"})
        EXPECT_THAT(page, Not(HasSubstr(unwanted)));
}

// The tiles are of what the machine can do, not of ranks that share cores.
TEST(report_html, has_tiles_of_the_largest_number_of_ranks_that_is_not_oversubscribed) {
    auto const page = report_html(sample_study(), plots);
    EXPECT_THAT(page, HasSubstr("<b>1.78x</b>"));
    EXPECT_THAT(page, HasSubstr("train_s (s) of 2 ranks (4.00 to 5.00 (range))"));
}

TEST(plot_scripts, hold_the_numbers) {
    auto const rows = scaling_rows(sample_study());
    EXPECT_THAT(speedup_script(rows, 2), HasSubstr("2 1.77778 1.5 2.125"));
    EXPECT_THAT(speedup_script(rows, 2), HasSubstr("bound by 2 cores"));
    EXPECT_THAT(speedup_script(rows, 4), Not(HasSubstr("bound by")));
    EXPECT_THAT(time_split_script(rows), HasSubstr("allreduce wait"));
    EXPECT_THAT(judged_script(rows, {"train_s", false}), HasSubstr("0 1 8 7.5 8.5"));
}

TEST(draw_svg, without_gnuplot_names_the_package) {
    try {
        draw_svg("plot x", environment{{"PATH", "/nowhere"}});
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::unavailable);
        EXPECT_THAT(e.what(), HasSubstr("gnuplot-nox"));
    }
}

TEST(draw_svg, draws_every_plot) {
    auto const variables = environment::capture();
    auto const rows = scaling_rows(sample_study());
    for (auto const& script :
         {speedup_script(rows, 2), judged_script(rows, {"train_s", false}), time_split_script(rows), published_script()}) {
        std::string svg;
        try {
            svg = draw_svg(script, variables);
        } catch (error const& e) {
            if (e.code() == errc::unavailable) GTEST_SKIP() << e.what();
            throw;
        }
        EXPECT_TRUE(svg.starts_with("<svg"));
        EXPECT_TRUE(svg.ends_with("</svg>"));
    }
}

TEST(draw_svg, says_when_gnuplot_fails) {
    try {
        draw_svg("plot nonsense(", environment::capture());
        FAIL();
    } catch (error const& e) {
        EXPECT_TRUE(e.code() == errc::library || e.code() == errc::unavailable) << e.what();
    }
}

}  // namespace
}  // namespace muster
