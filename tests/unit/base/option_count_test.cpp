// Tests of how many options muster's programs have: reads the rows of their tables in the sources.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace {

namespace fs = std::filesystem;

constexpr int most_options = 250;

/// The folders whose tables belong to a program. What muster's own processes give to one another does not count.
std::map<std::string, std::string> const programs{
    {"launch/settings", "muster"}, {"io", "muster-stage"}, {"bench", "muster-bench"}};

/// The rows of a table whose opening brace is before `text`, without that of --help.
int rows_in(std::string_view text) {
    int rows = 0, depth = 0;
    bool in_row = false;
    for (std::size_t i = 0; i < text.size() && depth >= 0; ++i) {
        char const c = text[i];
        if (c == '"' || c == '\'') {
            while (text[++i] != c)
                if (text[i] == '\\') ++i;
            continue;
        }
        if (text.substr(i, 2) == "//") i = text.find('\n', i);
        if (c == '}') --depth;
        if (depth == 0 && c == ',') in_row = false;
        if (depth == 0 && !in_row && (c == '{' || std::isalpha(static_cast<unsigned char>(c)) != 0)) {
            in_row = true;
            rows += text.substr(i).starts_with("{\"help\"") ? 0 : 1;
        }
        if (c == '{') ++depth;
    }
    return rows;
}

int options_of(fs::path const& folder) {
    constexpr std::string_view array = "[]{";
    int options = 0;
    for (auto each = fs::recursive_directory_iterator(folder); each != fs::recursive_directory_iterator(); ++each) {
        if (each->path().extension() != ".cpp") continue;
        std::ifstream in(each->path());
        std::string const text{std::istreambuf_iterator<char>(in), {}};
        for (auto at = text.find(array); at != text.npos; at = text.find(array, at + 1)) {
            auto const begin = text.rfind('\n', at) + 1;
            auto const declared = std::string_view(text).substr(begin, at - begin);
            if (declared.find("option_row ") != declared.npos || declared.ends_with("setting rows"))
                options += rows_in(std::string_view(text).substr(at + array.size()));
        }
    }
    return options;
}

TEST(option_count, reads_rows) {
    EXPECT_EQ(rows_in(R"( {"a", 'n', "}, {", {1, 2}}, strict_option, // {"no"},
                          {"help", 'h'},
                          {"b", 0}, };  {"of the next"} )"),
              3);
    EXPECT_EQ(rows_in(R"({"output", 'o', "FILE", "x", ""}};)"), 1);
}

TEST(option_count, is_small) {
    int sum = 0;
    std::string each;
    for (auto const& [folder, program] : programs) {
        int const options = options_of(fs::path(MUSTER_SOURCE_DIR) / folder);
        EXPECT_GT(options, 0) << "no table in " << folder << ": this test reads its rows no longer";
        sum += options;
        each += program + " " + std::to_string(options) + ", ";
    }
    EXPECT_LE(sum, most_options) << each << "together " << sum << ": a new option needs another to go: see CONTRIBUTING.md";
}

}  // namespace
