#include "bench/tools/checked_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

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
    try {
        read_json_file((folder / "none.json").string(), "give another");
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::not_found);
        EXPECT_THAT(e.what(), HasSubstr("none.json: No such file"));
        EXPECT_THAT(e.what(), HasSubstr("give another"));
    }
    EXPECT_THROW(read_json_file(folder.string()), error);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster
