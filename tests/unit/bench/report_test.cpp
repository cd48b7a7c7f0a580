#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "bench/scaling/plot.hpp"
#include "bench/scaling/report_html.hpp"
#include "bench/scaling/scaling_table.hpp"
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
    EXPECT_EQ(rows[0].train_s.median, 8);
    EXPECT_EQ(rows[0].speedup, 1);
    EXPECT_EQ(rows[0].speedup_low, 1);
    EXPECT_EQ(rows[1].train_s.median, 4.5);
    EXPECT_DOUBLE_EQ(rows[1].speedup, 8 / 4.5);
    EXPECT_DOUBLE_EQ(rows[1].efficiency, 8 / 4.5 / 2);
    EXPECT_DOUBLE_EQ(rows[1].speedup_low, 7.5 / 5.0);
    EXPECT_DOUBLE_EQ(rows[1].speedup_high, 8.5 / 4.0);
    EXPECT_FALSE(rows[1].oversubscribed);
    EXPECT_TRUE(rows[2].oversubscribed);
    EXPECT_EQ(rows[0].accuracy.median, 0.75);
    EXPECT_DOUBLE_EQ(rows[0].compute_s, 8 - 0.0625 - 0.125 - 0.03125);
}

TEST(scaling_rows, whose_base_is_not_one_rank) {
    auto s = sample_study();
    std::erase_if(s.runs, [](auto const& r) { return r.ranks == 1; });
    auto const rows = scaling_rows(s);
    EXPECT_EQ(rows[0].speedup, 1);
    EXPECT_EQ(rows[0].efficiency, 1);
    EXPECT_DOUBLE_EQ(rows[1].speedup, 4.5 / 5);
    EXPECT_DOUBLE_EQ(rows[1].efficiency, 4.5 / 5 / 2);
    EXPECT_THAT(scaling_text(s), HasSubstr("speed-up against 2 ranks (4.50 s"));
}

TEST(scaling_text, says_what_is_oversubscribed_and_what_the_base_is) {
    auto const text = scaling_text(sample_study());
    EXPECT_THAT(text, HasSubstr("oversubscribed: 4 ranks on 2 cores"));
    EXPECT_THAT(text, HasSubstr("7.50 to 8.50 (75% CI)"));
    EXPECT_THAT(
        text, HasSubstr("medians of 3 runs each; speed-up against 1 rank (8.00 s for 1 epoch of 60000 images); batch 64 a rank"));
    EXPECT_THAT(text, HasSubstr("1.78"));
    EXPECT_THAT(text, HasSubstr("89%"));
    EXPECT_THAT(text, HasSubstr("75.00%"));
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
                       &s.machine.system, &s.machine.kernel, &s.machine.compiler, &s.machine.gpus})
        *text = evil;
    for (auto& run : s.runs) {
        run.started = evil;
        for (auto* text : {&run.train.data, &run.train.kernels, &run.train.backend, &run.train.identity_source,
                           &run.train.version, &run.train.mpi_library, &run.train.protocol, &run.train.weights_checksum})
            *text = evil;
        for (auto& p : run.train.ranks) p.host = p.cores = evil;
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
                               "speed-up", "Some Processor", "GCC 12.2.0", "Open MPI v4.1.4", "7.50 to 8.50 (75% CI)",
                               "What the numbers mean", "0=0 1=1", "Hits over all images of the test split"})
        EXPECT_THAT(page, HasSubstr(wanted));
    EXPECT_THAT(page, Not(HasSubstr("{{"))) << "every field of the template was filled";
}

TEST(plot_scripts, hold_the_numbers) {
    auto const rows = scaling_rows(sample_study());
    EXPECT_THAT(speedup_script(rows, 2), HasSubstr("2 1.77778 1.5 2.125"));
    EXPECT_THAT(speedup_script(rows, 2), HasSubstr("bound by 2 cores"));
    EXPECT_THAT(speedup_script(rows, 4), Not(HasSubstr("bound by")));
    EXPECT_THAT(time_split_script(rows), HasSubstr("allreduce wait"));
    EXPECT_THAT(throughput_script(rows), HasSubstr("0 1 "));
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
    for (auto const& script : {speedup_script(rows, 2), throughput_script(rows), time_split_script(rows), published_script()}) {
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
