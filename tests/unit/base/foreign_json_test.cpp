#include "base/trust/foreign_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace muster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string nested(std::size_t levels, std::string const& opening = "[", std::string const& inner = "", char closing = ']') {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) text += opening;
    return text + inner + std::string(levels, closing);
}

TEST(foreign_json, is_read_to_a_bounded_depth) {
    EXPECT_EQ(parse_json_as<json>(nested(deepest_json), "x").dump(), nested(deepest_json));
    for (auto const& deep : {nested(deepest_json + 1), nested(500'000), nested(500'000, "{\"a\":", "1", '}'),
                             std::string(500'000, '['), R"({"a": "\\", "b": )" + nested(500'000) + "}"}) {
        EXPECT_THROW(parse_json_as<json>(deep, "x"), parse_error);
        EXPECT_TRUE(parse_json_or_discard<nlohmann::ordered_json>(deep).is_discarded());
    }
    auto const in_text = "\"" + std::string(500, '[') + "\\\"" + std::string(500, '{') + "\"";
    EXPECT_TRUE(parse_json_as<json>(in_text, "x").is_string());
    std::string wide = "[";
    for (int i = 0; i < 1000; ++i) wide += "[{}],";
    EXPECT_EQ(parse_json_as<json>(wide + "1]", "x").size(), 1001u);
}

TEST(foreign_json, faults_are_shown_with_their_place) {
    auto const fault = [](std::string const& text) {
        try {
            parse_json_as<json>(text, "x.json", errc::config);
        } catch (parse_error const& e) {
            EXPECT_EQ(e.code(), errc::config);
            return std::string(e.what());
        }
        return std::string();
    };
    EXPECT_THAT(fault("{\n  \"a\": " + nested(101) + "}"), testing::HasSubstr("x.json:2:107: nested deeper than 100 levels"));
    EXPECT_THAT(fault("{\n\"a\": 1e999}"), testing::HasSubstr("x.json:2:6: a number that no double can hold"));
    EXPECT_THAT(fault("{\n\"a\" 1}"), testing::HasSubstr("x.json:2:5: "));
    EXPECT_THAT(fault("\xff"), testing::HasSubstr("x.json:1:1: "));
}

TEST(foreign_json, is_read_in_no_other_way) {
    std::string found;
    fs::path const root = MUSTER_SOURCE_DIR;
    for (std::string const folder : {"base", "pmix", "comm", "io", "launch", "bench"})
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
            if (entry.path().filename() == "foreign_json.cpp") continue;
            std::ifstream file(entry.path());
            std::string line;
            for (int number = 1; std::getline(file, line); ++number)
                if (line.find("json::parse(") != std::string::npos || line.find("Json::parse(") != std::string::npos)
                    found += fs::relative(entry.path(), root).string() + ":" + std::to_string(number) + ": " + line + "\n";
        }
    EXPECT_EQ(found, "");
}

}  // namespace
}  // namespace muster
