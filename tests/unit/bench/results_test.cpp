#include "bench/scaling/study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/unit/bench/sample_study.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

// What the error says of a study changed by `damage`.
std::string complaint(std::function<void(nlohmann::json&)> const& damage) {
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

TEST(results, survive_writing_and_reading) {
    auto const before = sample_study();
    EXPECT_EQ(read_study(nlohmann::json::parse(to_json(before).dump()), "x"), before);
}

TEST(results, large_seeds_survive) {
    auto before = sample_study();
    before.runs[0].train.seed = 0xffffffffffffffff;
    EXPECT_EQ(read_study(nlohmann::json::parse(to_json(before).dump()), "x"), before);
}

TEST(results, damage_is_told_with_file_and_place) {
    EXPECT_THAT(complaint([](auto& j) { j["runs"][2].erase("ranks"); }), HasSubstr("results.json: /runs/2: has no 'ranks'"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"][1]["train"]["epochs_done"][0]["train_s"] = "fast"; }),
                HasSubstr("/runs/1/train/epochs_done/0/train_s: is string, expected a number"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"][0]["ranks"] = 2.5; }),
                HasSubstr("/runs/0/ranks: is 2.5, expected a whole number"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"][0]["ranks"] = 0; }), HasSubstr("/runs/0/ranks: is 0, expected 1 to 1000000"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"][0]["ranks"] = 3; }),
                HasSubstr("/runs/0/train: is a run of 1 ranks, where the study says 3"));
    EXPECT_THAT(complaint([](auto& j) { j["schema"] = "muster.results/9"; }),
                HasSubstr("is 'muster.results/9', expected 'muster.results/1'"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"] = nlohmann::json::array(); }), HasSubstr("/runs: is empty"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"] = 7; }), HasSubstr("/runs: is number, expected an array"));
    EXPECT_THAT(complaint([](auto& j) { j = nlohmann::json::array(); }),
                HasSubstr("results.json: /: is array, expected an object with 'schema'"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"][0]["train"]["epochs_done"][0]["correct"] = 10001; }),
                HasSubstr("expected 0 to 10000"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"][0]["train"]["epochs_done"][0]["train_s"] = 0; }), HasSubstr("took no time"));
    EXPECT_THAT(complaint([](auto& j) { j["context"]["cores"] = -1; }), HasSubstr("/context/cores"));
    EXPECT_THAT(complaint([](auto& j) { j["runs"][0]["train"]["seed"] = -1; }), HasSubstr("/runs/0/train/seed"));
}

TEST(json_file, that_does_not_parse_is_shown_with_a_caret) {
    try {
        parse_json("{\n \"schema\": oops\n}", "results.json");
        FAIL();
    } catch (parse_error const& e) {
        EXPECT_EQ(e.code(), errc::invalid_data);
        EXPECT_EQ(e.line(), 2u);
        EXPECT_THAT(e.what(), HasSubstr("results.json:2:"));
        EXPECT_THAT(e.what(), HasSubstr("^"));
    }
    try {
        parse_json("{\n \"wall_s\": 1e999}", "results.json");
        FAIL();
    } catch (parse_error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("results.json:2:12: a number that no double can hold"));
    }
    EXPECT_THROW(parse_json("", "x"), parse_error);
    EXPECT_THROW(parse_json("{\"a\":1", "x"), parse_error);
}

TEST(json_file, is_written_whole_and_read_back) {
    auto const folder = std::filesystem::temp_directory_path() / ("muster-json-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    auto const path = (folder / "x.json").string();
    write_json_file(path, {{"a", 1}});
    write_json_file(path, {{"a", 2}, {"bytes", "\xff"}});
    EXPECT_EQ(read_json_file(path)["a"], 2);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "nothing unfinished is left";
    EXPECT_THROW(write_json_file((folder / "no" / "x.json").string(), {}), error);
    EXPECT_THROW(read_json_file((folder / "none.json").string()), error);
    EXPECT_THROW(read_json_file(folder.string()), error);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster
