#include "bench/study/study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/unit/bench/sample_study.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

// The error message of a study changed by `damage`.
std::string message_after(std::function<void(nlohmann::json&)> const& damage) {
    auto document = to_json(sample_study());
    damage(document);
    try {
        read_study(document, "results.json");
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::invalid_data);
        return e.what();
    }
    return "no error";
}

TEST(study, survive_writing_and_reading) {
    auto const before = sample_study();
    EXPECT_EQ(read_study(nlohmann::json::parse(to_json(before).dump()), "x"), before);
}

TEST(study, of_another_program_survives) {
    auto before = plain_study({1, 2}, {{1, 2}, {3, 4}});
    before.plan.series = work_series::weak;
    before.plan.batch = 64;
    before.plan.shuffle = 7;
    before.plan.patterns = {{"loss", "", "loss=(.*)"}};
    before.plan.choices = {{"loss", "mean", "max"}};
    before.plan.launch = {"--bind-to", "core"};
    before.runs[0].status = run_status::timed_out;
    before.runs[0].reason = "took longer than 5 s";
    before.runs[1].metrics = {{"loss", "", 0, {3, 2, 1}}};
    before.runs[2].load.busiest = {{"cc1plus", 17, 0.98}};
    EXPECT_EQ(read_study(nlohmann::json::parse(to_json(before).dump()), "x"), before);
}

TEST(study, what_older_results_lack_may_be_missing) {
    auto document = to_json(sample_study());
    auto wanted = sample_study();
    for (auto const* name : {"protocol", "notes"}) document["plan"].erase(name);
    document.erase("software");
    for (auto& run : document["runs"]) {
        for (auto const* name : {"stolen", "clock_before_mhz", "clock_after_mhz"}) run["load"].erase(name);
        for (auto const* name : {"net", "data_note", "compute_note", "parameters", "target_accuracy", "reached_target"})
            run["train"].erase(name);
        for (auto const* name : {"exposed_s", "hidden_s", "waiting_s"}) run["train"]["epochs_done"][0].erase(name);
    }
    EXPECT_EQ(read_study(document, "x"), wanted);
}

TEST(study, of_protocols_and_their_conditions_survives) {
    auto before = sample_study();
    before.plan.protocol = "accuracy";
    before.plan.notes = {"generated images, no data set"};
    before.software = {{"mpirun", "4.1"}, {"torch", "1.13"}};
    before.runs[0].load.stolen = 0.25;
    before.runs[0].load.clock_before_mhz = 2000;
    before.runs[0].load.clock_after_mhz = 2500;
    auto& t = *before.runs[0].train;
    t.net = "cifar10";
    t.data_note = "generated images of 3x32x32";
    t.compute_note = "timed compute, no training";
    t.parameters = 23'272'266;
    t.target_accuracy = 0.5;
    t.reached_target = true;
    t.epochs_done[0].exposed_s = 0.125;
    t.epochs_done[0].hidden_s = 0.25;
    t.epochs_done[0].waiting_s = 0.5;
    EXPECT_EQ(read_study(nlohmann::json::parse(to_json(before).dump()), "x"), before);
}

TEST(metrics_of, tells_what_protocols_are_judged_by) {
    auto record = *sample_study().runs[0].train;
    auto const one = record.epochs_done[0];
    record.epochs_done.assign(7, one);
    for (std::size_t i = 0; i < 7; ++i) record.epochs_done[i].train_s = static_cast<double>(i + 1);
    auto const value = [&](std::string const& name) -> std::optional<double> {
        for (auto const& m : metrics_of(record))
            if (m.name == name) return m.values.back();
        return {};
    };
    EXPECT_EQ(value("first_epoch_s"), 1);
    EXPECT_EQ(value("epoch_s"), 5) << "the mean of 3 to 7";
    EXPECT_EQ(value("published_s"), 28 + 7 * 0.25);
    EXPECT_EQ(value("published_with_startup_s"), 28 + 7 * 0.25 + 0.5);
    EXPECT_FALSE(value("time_to_accuracy_s")) << "none was asked for";
    record.target_accuracy = 0.5;
    EXPECT_FALSE(value("time_to_accuracy_s")) << "not reached";
    record.reached_target = true;
    EXPECT_EQ(value("time_to_accuracy_s"), 28 + 7 * 0.25);
}

TEST(metrics_of, tells_parts_of_the_training_that_sum_to_it) {
    auto record = *sample_study().runs[0].train;
    auto const parts_of = [&](std::vector<std::string> const& names) {
        double sum = 0;
        for (auto const& m : metrics_of(record))
            if (std::ranges::find(names, m.name) != names.end()) sum += m.values.back();
        return sum;
    };
    record.epochs_done.assign(3, record.epochs_done[0]);
    EXPECT_DOUBLE_EQ(parts_of({"compute_s", "allreduce_wait_s", "loader_wait_s"}), record.train_s()) << "a record of before";
    for (auto& epoch : record.epochs_done) {
        epoch.exposed_s = 0.25;  // starting reductions too, which is no part of allreduce_wait_s
        epoch.waiting_s = 0.0625;
        epoch.hidden_s = 1;
    }
    EXPECT_DOUBLE_EQ(parts_of({"compute_s", "exposed_s", "waiting_s", "loader_wait_s"}), record.train_s());
}

TEST(study, large_seeds_survive) {
    auto before = sample_study();
    before.runs[0].train->seed = 0xffffffffffffffff;
    EXPECT_EQ(read_study(nlohmann::json::parse(to_json(before).dump()), "x"), before);
}

TEST(study, damage_is_told_with_file_and_place) {
    EXPECT_THAT(message_after([](auto& j) { j["runs"][2].erase("ranks"); }), HasSubstr("results.json: /runs/2: has no 'ranks'"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][1]["train"]["epochs_done"][0]["train_s"] = "fast"; }),
                HasSubstr("/runs/1/train/epochs_done/0/train_s: is string, expected a number"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["ranks"] = 2.5; }),
                HasSubstr("/runs/0/ranks: is 2.5, expected a whole number"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["ranks"] = 0; }),
                HasSubstr("/runs/0/ranks: is 0, expected 1 to 1000000"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["ranks"] = 3; }),
                HasSubstr("/runs/0/train: is a run of 1 ranks, where the study says 3"));
    EXPECT_THAT(message_after([](auto& j) { j["schema"] = "muster.results/9"; }),
                HasSubstr("is 'muster.results/9', expected 'muster.results/2'"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"] = nlohmann::json::array(); }), HasSubstr("/runs: is empty"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"] = 7; }), HasSubstr("/runs: is number, expected an array"));
    EXPECT_THAT(message_after([](auto& j) { j = nlohmann::json::array(); }),
                HasSubstr("results.json: /: is array, expected an object with 'schema'"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["train"]["epochs_done"][0]["correct"] = 10001; }),
                HasSubstr("expected 0 to 10000"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["train"]["epochs_done"][0]["train_s"] = 0; }),
                HasSubstr("took no time"));
    EXPECT_THAT(message_after([](auto& j) { j["context"]["cores"] = -1; }), HasSubstr("/context/cores"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["train"]["seed"] = -1; }), HasSubstr("/runs/0/train/seed"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0].erase("train"); }), HasSubstr("/runs/0: has no 'train'"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["status"] = "fine"; }),
                HasSubstr("/runs/0/status: is 'fine', expected one of ok, failed, timed_out, interrupted"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["metrics"][0]["values"] = nlohmann::json::array(); }),
                HasSubstr("/runs/0/metrics/0/values: is empty"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["wall_s"] = 0; }), HasSubstr("/runs/0/wall_s: is no time"));
    EXPECT_THAT(message_after([](auto& j) { j["plan"]["series"] = "odd"; }), HasSubstr("/plan/series: is 'odd'"));
}

}  // namespace
}  // namespace muster
