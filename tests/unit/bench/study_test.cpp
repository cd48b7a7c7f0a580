#include "bench/study/study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    before.runs[2].remarked = remarked_rank{1, "node1", 0.37, "its GPU ran at 1005 of 1980 MHz"};
    EXPECT_EQ(read_study(nlohmann::json::parse(to_json(before).dump()), "x"), before);
}

TEST(study, of_protocols_and_their_conditions_survives) {
    auto before = sample_study();
    before.plan.protocol = "accuracy";
    before.plan.notes = {"generated images, no data set"};
    before.software = {{"mpirun", "4.1"}, {"torch", "1.13"}};
    before.runs[0].load.stolen = 0.25;
    before.runs[0].load.clock_before_mhz = 2000;
    before.runs[0].load.clock_after_mhz = 2500;
    EXPECT_EQ(read_study(nlohmann::json::parse(to_json(before).dump()), "x"), before);
}

TEST(study, damage_is_told_with_file_and_place) {
    EXPECT_THAT(message_after([](auto& j) { j["runs"][2].erase("ranks"); }), HasSubstr("results.json: /runs/2: has no 'ranks'"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["ranks"] = 2.5; }),
                HasSubstr("/runs/0/ranks: is 2.5, expected a whole number"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["ranks"] = 0; }),
                HasSubstr("/runs/0/ranks: is 0, expected 1 to 1000000"));
    EXPECT_THAT(message_after([](auto& j) { j["schema"] = "muster.results/9"; }),
                HasSubstr("is 'muster.results/9', expected 'muster.results/3'"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"] = nlohmann::json::array(); }), HasSubstr("/runs: is empty"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"] = 7; }), HasSubstr("/runs: is number, expected an array"));
    EXPECT_THAT(message_after([](auto& j) { j = nlohmann::json::array(); }),
                HasSubstr("results.json: /: is array, expected an object with 'schema'"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][1]["metrics"][0]["values"][0] = "fast"; }),
                HasSubstr("/runs/1/metrics/0/values/0: is string, expected a number"));
    EXPECT_THAT(message_after([](auto& j) { j["plan"].erase("net"); }), HasSubstr("/plan: has no 'net'"));
    EXPECT_THAT(message_after([](auto& j) { j["context"]["cores"] = -1; }), HasSubstr("/context/cores"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["status"] = "fine"; }),
                HasSubstr("/runs/0/status: is 'fine', expected one of ok, failed, timed_out, interrupted"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["metrics"][0]["values"] = nlohmann::json::array(); }),
                HasSubstr("/runs/0/metrics/0/values: is empty"));
    EXPECT_THAT(message_after([](auto& j) { j["runs"][0]["wall_s"] = 0; }), HasSubstr("/runs/0/wall_s: is no time"));
    EXPECT_THAT(message_after([](auto& j) { j["plan"]["series"] = "odd"; }), HasSubstr("/plan/series: is 'odd'"));
}

}  // namespace
}  // namespace muster
