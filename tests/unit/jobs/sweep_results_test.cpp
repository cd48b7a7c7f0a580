#include "launch/jobs/logs/sweep_results.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

using namespace muster;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(sweep_results, the_last_value_of_each_metric_counts) {
    EXPECT_THAT(last_metrics("muster-metric: loss 2\nepoch 1 muster-metric: rate 10 images/s\nmuster-metric: loss 1.5\n"),
                ElementsAre(metric_value{"loss", "1.5", ""}, metric_value{"rate", "10", "images/s"}));
    EXPECT_THAT(
        last_metrics("muster-metric: loss\nmuster-metric: loss nine\nmuster-metric:\nmuster-metric: a 1 s extra\nloss 3\n"),
        IsEmpty());
    EXPECT_THAT(last_metrics("muster-metric: loss 2\r\nmuster-metric: loss \033[1m3\n"),
                ElementsAre(metric_value{"loss", "2", ""}));
}

TEST(sweep_results, tasks_have_their_place_in_the_array) {
    EXPECT_EQ(index_of_task("12_3"), 3U);
    EXPECT_EQ(index_of_task("12[4].server"), 4U);
    for (auto const* none : {"12", "12[]", "12_[3-5]", "12[", "12_", "f6tw1Mjm"}) EXPECT_FALSE(index_of_task(none)) << none;
}

TEST(sweep_results, a_task_has_its_values_in_the_name_of_its_folder) {
    job_record record;
    record.run_folder = "/w/lr{lr}-%j";
    record.each = {{"lr", {"0.1", "0.01"}}};
    EXPECT_EQ(with_task_folder(record, "12_1")->run_folder, "/w/lr0.01-%j");
    EXPECT_EQ(with_task_folder(record, "12_2")->run_folder, "/w/lr{lr}-%j") << "a task that the sweep does not have";
    EXPECT_EQ(with_task_folder(record, "12")->run_folder, "/w/lr{lr}-%j");
    record.each.clear();
    record.run_folder = "/w/{index}";
    EXPECT_EQ(with_task_folder(record, "12[7]")->run_folder, "/w/7");
}

TEST(sweep_results, one_table_shows_parameters_metrics_and_ends) {
    std::vector<each_parameter> const each{{"lr", {"0.1", "0.01"}}, {"wd", {""}}};
    std::vector<sweep_row> const rows{{.task = "12_0",
                                       .values = {"0.1", ""},
                                       .metrics = {{"loss", "0.5", ""}, {"rate", "9", "images/s"}},
                                       .state = "COMPLETED",
                                       .exit_code = 0,
                                       .folder = "/w/13"},
                                      {.task = "12_1",
                                       .values = {"0.01", ""},
                                       .metrics = {{"acc", "0.9", ""}},
                                       .state = "FAILED, exit code 3",
                                       .exit_code = 3,
                                       .folder = ""}};
    auto const table = sweep_table(each, rows);
    EXPECT_THAT(table, HasSubstr("task  lr    wd  loss  rate (images/s)  acc  state                folder\n"));
    EXPECT_THAT(table, HasSubstr("12_0  0.1   ''  0.5   9                -    COMPLETED            /w/13\n"));
    EXPECT_THAT(table, HasSubstr("12_1  0.01  ''  -     -                0.9  FAILED, exit code 3  -"));
    auto const json = json_of(each, rows);
    EXPECT_EQ(json[0]["parameters"]["lr"], "0.1");
    EXPECT_EQ(json[0]["metrics"]["rate"]["value"], 9.0);
    EXPECT_EQ(json[1]["exit_code"], 3);
}

TEST(sweep_results, a_record_keeps_the_parameters) {
    job_record record;
    record.id = "12";
    record.each = {{"lr", {"0.1", "\xff"}}};
    EXPECT_EQ(parse_job_record(to_json(record), "x").each, record.each);
}
