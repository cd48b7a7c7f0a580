#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "bench/report/report_document.hpp"
#include "bench/report/report_json.hpp"
#include "bench/report/report_page.hpp"
#include "bench/report/report_text.hpp"
#include "bench/report/study_summary.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/scaling_table.hpp"
#include "tests/unit/bench/sample_study.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
        run.reason = evil;
    }
    auto const document = gather_report({{{s, "study/results.json"}}});
    for (auto const& figures : {report_figures{{{evil, evil, evil}}, ""}, report_figures{{}, evil}}) {
        auto const page = report_html(document, figures);
        EXPECT_THAT(page, Not(HasSubstr("<script")));
        EXPECT_THAT(page, Not(HasSubstr("alert(\"")));
        EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
    }
}

study published_study() {
    auto s = sample_study();
    s.plan.protocol = "published";
    return s;
}

TEST(report_html, needs_no_network_and_holds_what_it_must) {
    auto const page = page_of(published_study());
    for (auto const* forbidden : {"http://", "https://", "<script", "<link", "@import", "url(", "src="})
        EXPECT_THAT(page, Not(HasSubstr(forbidden)));
    auto const text = without_tags(page);
    for (auto const* wanted : {"Published, 2020, A100s: not like for like", "499.8", "8.97", "oversubscribed: 4 ranks on 2 cores",
                               "speed-up", "Some Processor", "GCC 12.2.0", "7.50 to 8.50 (range)", "What the numbers mean",
                               "0=0 1=1", "Hits over all images of the test split", "A reviewer's checklist"})
        EXPECT_THAT(text, HasSubstr(wanted));
    EXPECT_THAT(page, Not(HasSubstr("{{"))) << "every field of the template was filled";
}

TEST(report_html, shows_the_published_table_for_its_own_settings_alone) {
    EXPECT_THAT(page_of(sample_study()), Not(HasSubstr("not like for like")));
    auto s = published_study();
    s.plan.program.insert(s.plan.program.end(), {"--batch", "32"});
    EXPECT_THAT(page_of(s), Not(HasSubstr("not like for like")));
}

TEST(report_html, of_another_program_has_nothing_of_the_training) {
    auto s = plain_study({1, 2}, {{4, 5, 6}, {2, 2.5, 3}});
    s.plan.program = {"./train.py", "<b>"};
    s.runs[0].status = run_status::failed;
    s.runs[0].reason = "exit code <3>";
    s.load = {9, 8, 4, {}, {{"<script>", 1, 1}}};
    auto const page = page_of(s), text = without_tags(page);
    for (auto const* wanted :
         {"Scaling of train.py", "exit code &lt;3&gt;", "2.20", "A busy machine", "of 6 runs failed", "&lt;b&gt;"})
        EXPECT_THAT(text, HasSubstr(wanted));
    for (auto const* unwanted : {"ublished", "MNIST", "loader", "images", "<script", "<b>'", "{{"})
        EXPECT_THAT(page, Not(HasSubstr(unwanted)));
    EXPECT_LT(text.find("times as fast on"), text.find("of 6 runs failed")) << "the result, then the worst news";
}

// The tiles are of what the machine can do, not of ranks that share cores.
TEST(report_html, has_a_tile_of_the_best_number_of_ranks_that_is_not_oversubscribed) {
    auto const text = without_tags(page_of(sample_study()));
    EXPECT_THAT(text, HasSubstr("1.78xon 2 ranks: train_s 4.50 s, 4.00 to 5.00 (range); speed-up 1.50 to 2.12, efficiency 89%"));
}

TEST(report_html, has_a_tile_of_the_base_where_more_ranks_are_no_faster) {
    for (auto const& [one, two] : {std::pair(std::vector{4.0, 4.0, 4.0}, std::vector{8.0, 8.0, 8.0}),
                                   std::pair(std::vector{4.0, 1.0, 9.0}, std::vector{3.9, 1.0, 9.0})}) {
        auto const s = plain_study({1, 2}, {one, two});
        auto const study = gather_report({{{s, "results.json"}}}).studies.at(0);
        ASSERT_TRUE(study.best);
        EXPECT_EQ(study.best->ranks, 1);
        auto const text = without_tags(page_of(s));
        EXPECT_THAT(text, HasSubstr("more ranks are not measurably faster"));
        EXPECT_THAT(text, testing::Not(HasSubstr("xon 2 ranks")));
    }
    auto const faster = gather_report({{{plain_study({1, 2}, {{4, 4, 4}, {2, 2, 2}}), "results.json"}}});
    EXPECT_EQ(faster.studies.at(0).best->ranks, 2);
}

TEST(report_html, names_no_share_of_the_time_where_more_ranks_are_slower) {
    auto s = plain_study({1, 2}, {{4, 4, 4}, {6, 6, 6}});
    s.plan.series = work_series::strong;
    EXPECT_THAT(without_tags(page_of(s)), HasSubstr("serial partat 2 ranks: see what limits it"));
}

TEST(report_document, puts_studies_side_by_side_and_says_what_differs) {
    auto const one = plain_study({1, 2}, {{4, 4, 4}, {2, 2, 2}});
    auto other = plain_study({1, 2}, {{4, 4, 4}, {3, 3, 3}});
    other.plan.launch = {"--bind-to", "none"};
    auto const document = gather_report({{{one, "one/results.json"}, {other, "other/results.json"}}});
    EXPECT_EQ(document.studies.at(0).label, "train.py (one)");
    EXPECT_EQ(document.studies.at(1).rows.at(1).speedup->value, 4.0 / 3);
    ASSERT_EQ(document.differences.size(), 1u);
    EXPECT_EQ(document.differences[0].setting, "plan/launch");
    auto const text = without_tags(report_html(document));
    EXPECT_THAT(text, HasSubstr("What differs"));
    EXPECT_THAT(report_markdown(document), HasSubstr("| options of muster run | - | --bind-to none |"));
    auto const csv = report_csv(document);
    EXPECT_THAT(csv, HasSubstr("\ntrain.py (one),2,1,3,0,0,0,0,2.0,2.0,2.0,1.0,2.0,2.0,2.0,3\n"));
}

/// 4 and 8 ranks on 2 nodes of 2 cores each: the machine that ran the study has 2.
study study_of_nodes() {
    auto s = plain_study({1, 4, 8}, {{8, 8, 8}, {2.4, 2.4, 2.4}, {1.2, 1.2, 1.2}});
    s.machine.cores = 2;
    for (int const ranks : {1, 4, 8}) {
        study_point point{ranks, ranks == 1 ? 1 : 2, {}, ranks == 8, "", {}};
        s.points.push_back(point);
    }
    for (auto& run : s.runs) {
        run.nodes = run.ranks == 1 ? 1 : 2;
        run.oversubscribed = run.ranks == 8;
    }
    return s;
}

TEST(report_html, counts_the_cores_of_all_nodes) {
    auto const page = page_of(study_of_nodes());
    EXPECT_THAT(without_tags(page), HasSubstr("oversubscribed: 8 ranks on 4 cores"));
}

TEST(report_html, holds_its_figures_or_says_how_to_draw_them) {
    auto const document = gather_report({{{sample_study(), "study/results.json"}}});
    auto const drawn = report_html(document, {{{"speed-up.svg", "Spreads < 1.", "<svg/>"}}, ""});
    EXPECT_THAT(
        drawn,
        HasSubstr(
            "<img alt=\"speed-up.svg\" src=\"data:image/svg+xml;base64,PHN2Zy8+\"><figcaption>Spreads &lt; 1.</figcaption>"));
    EXPECT_THAT(drawn, Not(HasSubstr("plots.py")));
    auto const none = report_html(document, {{}, "there is no Matplotlib"});
    EXPECT_THAT(without_tags(none),
                HasSubstr("There are none: there is no Matplotlib. Where Matplotlib is, python3 plots.py draws them"));
    EXPECT_THAT(none, AllOf(Not(HasSubstr("<img")), HasSubstr("1.78"))) << "the tables are there";
}

TEST(data_url, is_base64_of_any_length) {  // RFC 4648, section 10
    for (auto const& [text, digits] : {std::pair("", ""), {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}})
        EXPECT_EQ(data_url(text), std::string("data:image/svg+xml;base64,") + digits);
}

TEST(report_html, begins_with_one_sentence) {
    auto const text = without_tags(page_of(plain_study({1, 2}, {{4, 4.1, 4.2}, {2, 2.1, 2.2}})));
    EXPECT_THAT(text,
                HasSubstr("train.py is 1.95 times as fast on 2 ranks as on 1 (1.82 to 2.10), 98% efficiency: wall_s 2.10 s"));
    EXPECT_THAT(scaling_text(plain_study({1, 2}, {{4, 4.1, 4.2}, {2, 2.1, 2.2}})), HasSubstr("train.py is 1.95 times as fast"));
    EXPECT_THAT(without_tags(page_of(plain_study({1, 2}, {{4, 5}, {4, 5}}))),
                HasSubstr("train.py is not measurably faster on 2 ranks than on 1"));
    EXPECT_THAT(without_tags(page_of(study_of_nodes())), HasSubstr("3.33 times as fast on 4 ranks (2 nodes) as on 1"));
    auto crowded = study_of_nodes();
    for (auto& run : crowded.runs) run.oversubscribed = run.ranks > 1;
    EXPECT_THAT(without_tags(page_of(crowded)), HasSubstr("6.67 times as fast on 8 ranks (2 nodes) as on 1 (6.67 to 6.67), 83% "
                                                          "efficiency: wall_s 1.20 s; it has more ranks than cores"));
    EXPECT_THAT(without_tags(page_of(plain_study({2}, {{4, 5}}))), HasSubstr("train.py on 2 ranks: wall_s 4.50 s"));
}

TEST(report_html, of_two_studies_shows_results_before_what_differs) {
    auto one = plain_study({1, 2}, {{4, 4, 4}, {2, 2, 2}}), other = one;
    one.plan.series = work_series::strong;
    other.plan.series = work_series::weak;
    other.variables = {{"OMP_NUM_THREADS", "1"}};
    auto const page = report_html(gather_report({{{one, "/tmp/x/one/results.json"}, {other, "/tmp/x/other/results.json"}}}));
    EXPECT_LT(page.find("Scaling: train.py"), page.find("What differs"));
    EXPECT_THAT(page, HasSubstr("<h1>Scaling of train.py (one) and train.py (other)</h1>"));
    EXPECT_THAT(without_tags(page), HasSubstr("variable OMP_NUM_THREADS"));
}

checked_rule const& rule(std::vector<checked_rule> const& all, int number) {
    return all.at(static_cast<std::size_t>(number - 1));
}

TEST(check_rules, decides_from_what_was_recorded) {
    auto few = plain_study({1, 2}, {{4, 4.1, 4.2}, {2, 2.1, 2.2}});
    auto const three = check_rules(few);
    ASSERT_EQ(three.size(), 12u);
    EXPECT_EQ(rule(three, 1).answer, rule_answer::yes);
    EXPECT_EQ(rule(three, 5).answer, rule_answer::no) << "three runs give no interval";
    EXPECT_THAT(rule(three, 5).reason, HasSubstr("3 runs of a number of ranks give a range"));
    EXPECT_EQ(rule(three, 9).answer, rule_answer::no) << "no processor was recorded";
    auto const six = check_rules(plain_study({1, 2}, {{4, 4, 4, 4, 4, 4.2}, {2, 2, 2, 2, 2, 2.2}}));
    EXPECT_EQ(rule(six, 5).answer, rule_answer::yes);
    EXPECT_EQ(rule(six, 7).answer, rule_answer::yes);
    auto const alone = check_rules(plain_study({1}, {{4}}));
    EXPECT_EQ(rule(alone, 1).answer, rule_answer::not_known);
    EXPECT_EQ(rule(alone, 11).answer, rule_answer::no);
}

TEST(check_rules, of_one_number_of_ranks_compare_nothing) {
    auto const alone = plain_study({1}, {{4}});
    EXPECT_EQ(rule(check_rules(alone), 7).answer, rule_answer::not_known);
    EXPECT_THAT(rule(check_rules(alone), 2).reason, HasSubstr("up to 1 rank on 1 node;"));
}

TEST(report_context, a_load_that_is_not_known_is_no_figure) {
    auto s = sample_study();
    for (auto& run : s.runs) run.load.average = -1;
    EXPECT_THAT(without_tags(page_of(s)), Not(HasSubstr("-1.00")));
    EXPECT_THAT(without_tags(page_of(s)), HasSubstr("not known: the system tells no load average"));
    s.runs.front().load.average = 0.5;
    EXPECT_THAT(without_tags(page_of(s)), HasSubstr("0.50 to 0.50 (one-minute average); not known of 8 of 9 runs"));
}

TEST(report_document, of_another_commands_results_says_what_to_give) {
    auto const path = testing::TempDir() + "/io.json";
    std::ofstream(path) << R"({"schema": "muster.io/1", "reading": []})";
    try {
        read_report_input({path});
        ADD_FAILURE() << "it was read";
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::invalid_data);
        EXPECT_THAT(e.what(), HasSubstr("io.json: holds 'muster.io/1', of which there is no report; give the results.json"));
    }
}

TEST(report_json, has_each_member_of_the_schema) {
    auto s = sample_study();
    s.plan.notes = {"generated images"};
    auto const document = to_json(gather_report({{{s, "study/results.json"}}}));
    EXPECT_EQ(document.at("schema"), "muster.report/1");
    auto const& study = document.at("studies").at(0);
    EXPECT_EQ(study.at("schema"), "muster.scaling-summary/4");
    EXPECT_EQ(study.at("notes"), report_json::array({"generated images"}));
    EXPECT_EQ(study.at("by_rank").at("runs").at(0).at("values").at(1), 4 - 0.15625) << "compute_s of rank 1 of 2";
    EXPECT_EQ(study.at("tiles").at(0).at("speedup").at("value"), 8 / 4.5);
    EXPECT_EQ(study.at("runs").at(0).at("metrics").at("train_s"), 7.5);
    EXPECT_EQ(study.at("rows").at(2).at("cores"), 2);
}

TEST(report_json, has_the_figures_of_notes_and_judgements) {
    auto const before = plain_study({1, 2}, {{200, 200, 200, 200, 200}, {100, 100, 100, 100, 100}});
    auto s = plain_study({1, 2}, {{44.5, 240, 240, 250, 245}, {150, 150, 150, 150, 150}});
    s.runs[1].load = {0.5, 8, 0.0, 3.5, {}};
    auto judged = judge(parse_expectation("wall_s[2]<=120"), scaling_rows(s), s.plan);
    for (auto const& one : compare_with_baseline(s, before, 0.25)) judged.push_back(one);
    auto const summary = to_json(summarise_study(s, "a", "results.json", judged));
    auto const& row = summary.at("rows").at(0);
    EXPECT_EQ(row.at("others"), 3.5);
    EXPECT_EQ(row.at("outliers"), report_json::parse(R"([{"repeat": 1, "value": 44.5}])"));
    EXPECT_EQ(summary.at("rows").at(1).at("outliers"), report_json::array());
    EXPECT_EQ(summary.at("judgements").at(0).at("values"),
              report_json::parse(R"({"ranks": 2, "value": 150, "low": 150, "high": 150})"));
    EXPECT_EQ(summary.at("judgements").at(2).at("values"),
              report_json::parse(R"({"ranks": 2, "allowed": 0.25, "now": 150, "before": 100, "change": 0.5})"));
}

TEST(busbw_tables, are_bytes_over_time_times_the_factor) {
    auto const document = parse_json(R"({"schema": "muster.collectives/1", "created": "now", "command": "x",
        "context": {"host": "a", "cores": 1, "load": 0.5}, "collective": "allreduce", "type": "f32", "redop": "sum", "ranks": 4,
        "simulated": false, "bus_factor": 1.5, "jobs": [{"name": "shm", "simulated": false}],
        "cells": [{"by": "shm", "bytes": 3000, "out_of_place_us": [2, 4, 3], "in_place_us": []}]})",
                                     "here");
    ASSERT_TRUE(is_collectives(document));
    std::vector<busbw_table> tables;
    add_busbw_tables(checked_json(document, "here"), "c.json", tables);
    ASSERT_EQ(tables.size(), 1u);
    EXPECT_DOUBLE_EQ(tables[0].curves.at(0).points.at(0).busbw_gbs, 1.5) << "3000 B in 3 us, by 1.5";
    auto const text = without_tags(report_html(gather_report({{}, tables})));
    EXPECT_THAT(text, HasSubstr("allreduce f32 on 4 ranks"));
    EXPECT_THAT(text, HasSubstr("bytesshm, GB/s\n\n30001.50")) << "the table";
    EXPECT_THAT(text, AllOf(HasSubstr("Machinea, 1 core\n"), Not(HasSubstr("A busy machine"))));
}

TEST(busbw_tables, come_with_their_machine_and_say_that_it_was_busy) {
    auto const document = parse_json(R"([{"schema": "muster.collectives/1", "created": "now", "command": "x --json c",
        "context": {"host": "a", "processor": "<b>EPYC", "cores": 2, "kernel": "Linux 6.1", "compiler": "GCC 12.2.0", "load": 4},
        "collective": "allreduce", "type": "f32", "redop": "sum", "ranks": 2, "simulated": false, "bus_factor": 1,
        "jobs": [{"name": "shm", "version": "muster 0.1.0, shm", "simulated": false}],
        "cells": [{"by": "shm", "bytes": 3000, "out_of_place_us": [1, 3, 900], "in_place_us": []}],
        "load": {"average": 4, "cpus": 2, "others_before": 1.998, "others_during": 1.0, "busiest": [{"name": "cc1plus", "pid": 1, "cpus": 1}]}}])",
                                     "here");
    std::vector<busbw_table> tables;
    for (int i = 0; i < 2; ++i) add_busbw_tables(checked_json(document, "here"), "c.json", tables);
    auto const whole = gather_report({{}, tables});
    auto const page = report_html(whole), markdown = report_markdown(whole);
    for (auto const& text : {without_tags(page), markdown})
        for (auto const* wanted : {"Before the runs other programs used 2.0 of 2 CPUs (cc1plus 1.00; load average 4.0)",
                                   "A busy machine: these figures mean little.", "EPYC, 2 cores",
                                   "muster 0.1.0, shm; built by GCC 12.2.0", "Linux 6.1", "x --json c"})
            EXPECT_THAT(text, HasSubstr(wanted));
    EXPECT_THAT(page, Not(HasSubstr("<b>EPYC")));
    EXPECT_EQ(page.find("A busy machine"), page.rfind("A busy machine")) << "one machine, one warning";
}

}  // namespace
}  // namespace muster
