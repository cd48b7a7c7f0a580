// The layers of the house: an #include may name its own folder or one listed for it, never one above.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::map<std::string, std::set<std::string>> const may_include{
    {"base", {}},
    {"pmix", {"base"}},
    {"comm", {"base", "pmix"}},
    {"io", {"base", "pmix", "comm"}},
    {"jobscripts", {"base"}},
    {"launch", {"base", "pmix", "jobscripts"}},
    {"bench", {"base", "pmix", "comm", "io"}},
};

std::vector<std::string> violations(fs::path const& root) {
    std::vector<std::string> found;
    std::regex const include(R"(^\s*#\s*include\s+"([a-z-]+)/)");
    for (auto const& [folder, allowed] : may_include) {
        if (!fs::exists(root / folder)) continue;
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            auto const extension = entry.path().extension();
            if (extension != ".cpp" && extension != ".hpp" && extension != ".h" && extension != ".cu") continue;
            std::ifstream file(entry.path());
            std::string line;
            for (int number = 1; std::getline(file, line); ++number) {
                std::smatch match;
                if (!std::regex_search(line, match, include)) continue;
                std::string const target = match[1];
                if (target != folder && may_include.contains(target) && !allowed.contains(target))
                    found.push_back(entry.path().string() + ":" + std::to_string(number) + ": " + folder + "/ may not include " +
                                    target + "/");
            }
        }
    }
    return found;
}

TEST(layering, no_include_points_upward) {
    for (auto const& violation : violations(MUSTER_SOURCE_DIR)) ADD_FAILURE() << violation;
}

// The first directive of a header; a C header has its own way.
TEST(layering, every_header_has_its_guard) {
    for (auto const& [folder, allowed] : may_include) {
        for (auto const& entry : fs::recursive_directory_iterator(fs::path(MUSTER_SOURCE_DIR) / folder)) {
            if (entry.path().extension() != ".hpp" && entry.path().extension() != ".h") continue;
            std::ifstream file(entry.path());
            std::string line;
            while (std::getline(file, line) && !line.starts_with('#')) {
            }
            EXPECT_TRUE(line == "#pragma once" || (entry.path().extension() == ".h" && line.starts_with("#ifndef ")))
                << entry.path() << ": " << line;
        }
    }
}

TEST(layering, an_upward_include_is_found) {
    fs::path const root = fs::temp_directory_path() / ("muster-layering-" + std::to_string(::getpid()));
    fs::create_directories(root / "base");
    std::ofstream(root / "base" / "bad.hpp") << "#pragma once\n#include \"comm/communicator.hpp\"\n";
    EXPECT_EQ(violations(root).size(), 1u);
    fs::remove_all(root);
}

}  // namespace
