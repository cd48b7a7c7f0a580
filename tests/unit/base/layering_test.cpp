// Tests of the include graph: every #include names the folder of its own file or one on a lower floor.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using names = std::vector<std::string>;

// The top-level folders: what each may include besides itself.
std::map<std::string, std::set<std::string>> const may_include{
    {"base", {}},
    {"pmix", {"base"}},
    {"comm", {"base", "pmix"}},
    {"io", {"base", "pmix", "comm"}},
    {"jobscripts", {"base"}},
    {"launch", {"base", "pmix", "jobscripts"}},
    {"bench", {"base", "pmix", "comm", "io"}},
};

// The floors within a folder, lowest first. A subfolder may include those on lower floors, and none on its own; "." is the folder's own files.
std::map<std::string, std::vector<names>> const floors_of{
    {"launch",
     {{"system"},
      {"hardware", "scheduler", "observe"},
      {"elastic", "samples"},
      {"placement"},
      {"settings", "ranks", "wire"},
      {"remote"},
      {"site", "help", "engine", "shim"},
      {"preflight", "watch", "record"},
      {"keep"},
      {"run"},
      {"site_tools"},
      {"commands"},
      {"scripts"},
      {"jobs"},
      {"."}}},
    {"comm",
     {{"tensor"},
      {"backend", "cuda"},
      {"membership", "mpi", "shm", "tcp"},
      {"hierarchical"},
      {"nccl"},
      {"."},
      {"gradients"},
      {"exchange"},
      {"c_api"},
      {"modules"}}},
    {"comm/exchange", {{"request"}, {"observe"}, {"batch"}, {"negotiation"}, {"core"}, {"."}}},
    {"bench", {{"tools", "peers"}, {"study", "collectives"}, {"report"}, {"scaling", "gpu"}, {"."}}},
    {"base", {{"."}, {"process", "c_api", "codec"}, {"trust"}, {"command", "trace"}}},
    {"pmix", {{"library", "."}, {"server", "client"}, {"pmi1"}}},
    {"io", {{"hdf5"}, {"dataset"}, {"arrays", "tree"}, {"sources"}, {"convert", "copy", "loader"}, {"stage"}}},
};

constexpr int most_files_in_a_folder = 25;

bool is_source(fs::path const& path) {
    auto const extension = path.extension();
    return extension == ".cpp" || extension == ".hpp" || extension == ".h" || extension == ".cu" || extension == ".inc";
}

// The subfolder of `house` that `path` lies in: "ranks" for launch/ranks/x.hpp in launch, "." for launch/x.cpp; nothing if `path` lies elsewhere.
std::string room_in(std::string const& house, std::string const& path) {
    if (!path.starts_with(house + "/")) return {};
    auto const rest = path.substr(house.size() + 1);
    auto const slash = rest.find('/');
    return slash == std::string::npos ? "." : rest.substr(0, slash);
}

int floor_in(std::vector<names> const& floors, std::string const& room) {
    for (std::size_t i = 0; i < floors.size(); ++i)
        if (std::ranges::find(floors[i], room) != floors[i].end()) return int(i);
    return -1;
}

// Why `from` (a path from the root) may not include `target`, or nothing.
std::string fault(std::string const& from, std::string const& target) {
    auto const top = from.substr(0, from.find('/')), target_top = target.substr(0, target.find('/'));
    if (!may_include.contains(target_top)) return {};
    if (top != target_top)
        return may_include.at(top).contains(target_top) ? std::string() : top + "/ may not include " + target_top + "/";
    for (auto const& [house, floors] : floors_of) {
        auto const room = room_in(house, from), target_room = room_in(house, target);
        if (room.empty() || target_room.empty() || room == target_room) continue;
        int const here = floor_in(floors, room), there = floor_in(floors, target_room);
        if (here < 0 || there < 0)
            return house + "/" + (here < 0 ? room : target_room) + "/ has no floor: add it to floors_of in this test";
        if (there >= here)
            return house + "/" + room + " (floor " + std::to_string(here) + ") may not include " + house + "/" + target_room +
                   " (floor " + std::to_string(there) + ")";
    }
    return {};
}

names violations(fs::path const& root) {
    names found;
    std::regex const include(R"re(^\s*#\s*include\s+"([a-z_-]+/[^"]+)")re");
    for (auto const& [folder, allowed] : may_include) {
        if (!fs::exists(root / folder)) continue;
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            if (!is_source(entry.path())) continue;
            auto const from = fs::relative(entry.path(), root).string();
            std::ifstream file(entry.path());
            std::string line;
            for (int number = 1; std::getline(file, line); ++number) {
                std::smatch match;
                if (line.find("include") == std::string::npos || !std::regex_search(line, match, include)) continue;
                if (auto const why = fault(from, match[1]); !why.empty())
                    found.push_back(from + ":" + std::to_string(number) + ": " + why);
            }
        }
    }
    return found;
}

// The folders of the parts that a build may leave out (packaging/parts.txt), as "bench/". Only they may include each other's files.
std::map<std::string, names> folders_of_parts(fs::path const& root) {
    std::map<std::string, names> found;
    std::ifstream file(root / "packaging/parts.txt");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string part;
        if (line.starts_with('#') || !(words >> part)) continue;
        for (std::string folder; words >> folder;) found[part].push_back(folder);
    }
    return found;
}

std::string part_of(std::map<std::string, names> const& parts, std::string const& path) {
    for (auto const& [part, folders] : parts)
        for (auto const& folder : folders)
            if (path.starts_with(folder)) return part;
    return {};
}

// What a part does not come with: a core's include of a part, or a part's of another.
names crossings(fs::path const& root) {
    names found;
    auto const parts = folders_of_parts(root);
    std::regex const include(R"re(^\s*#\s*include\s+"([a-z_-]+/[^"]+)")re");
    for (auto const& [folder, allowed] : may_include) {
        if (!fs::exists(root / folder)) continue;
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            if (!is_source(entry.path())) continue;
            auto const from = fs::relative(entry.path(), root).string();
            std::ifstream file(entry.path());
            std::smatch match;
            for (std::string line; std::getline(file, line);) {
                if (line.find("include") == std::string::npos || !std::regex_search(line, match, include)) continue;
                auto const of = part_of(parts, match[1]);
                if (!of.empty() && of != part_of(parts, from))
                    found.push_back(from + ": " + match[1].str() + " is of the part " + of);
            }
        }
    }
    return found;
}

names crowded_folders(fs::path const& root) {
    std::map<std::string, int> files;
    for (auto const& [folder, allowed] : may_include)
        if (fs::exists(root / folder))
            for (auto const& entry : fs::recursive_directory_iterator(root / folder))
                if (is_source(entry.path())) ++files[fs::relative(entry.path().parent_path(), root).string()];
    names found;
    for (auto const& [folder, count] : files)
        if (count > most_files_in_a_folder) found.push_back(folder + "/: " + std::to_string(count) + " files");
    return found;
}

// A tree of its own that is gone with the test.
struct scratch_tree {
    fs::path root = fs::temp_directory_path() / ("muster-layering-" + std::to_string(::getpid()));
    scratch_tree() { fs::remove_all(root); }
    ~scratch_tree() { fs::remove_all(root); }
    void add(fs::path const& path, std::string const& included) const {
        fs::create_directories((root / path).parent_path());
        std::ofstream(root / path) << "#pragma once\n#include \"" << included << "\"\n";
    }
};

TEST(layering, no_include_points_upward) {
    for (auto const& violation : violations(MUSTER_SOURCE_DIR)) ADD_FAILURE() << violation;
}

TEST(layering, a_part_can_be_left_out) {
    EXPECT_EQ(folders_of_parts(MUSTER_SOURCE_DIR).size(), 6u);
    for (auto const& crossing : crossings(MUSTER_SOURCE_DIR)) ADD_FAILURE() << crossing;
}

TEST(layering, no_folder_is_crowded) {
    for (auto const& folder : crowded_folders(MUSTER_SOURCE_DIR))
        ADD_FAILURE() << folder << ", at most " << most_files_in_a_folder;
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

// A header's first line is a comment that names the thing; a question word first would be a riddle.
TEST(layering, every_header_says_what_it_holds) {
    std::regex const riddle(R"(^// (What|Who|How|Whether|Where|When|Why|Which)\b.*)");
    for (auto const& [folder, allowed] : may_include) {
        for (auto const& entry : fs::recursive_directory_iterator(fs::path(MUSTER_SOURCE_DIR) / folder)) {
            if (entry.path().extension() != ".hpp" && entry.path().extension() != ".h") continue;
            std::ifstream file(entry.path());
            std::string line;
            std::getline(file, line);
            EXPECT_TRUE(line.starts_with("// ") || line.starts_with("/* ")) << entry.path() << " begins with: " << line;
            EXPECT_FALSE(std::regex_match(line, riddle)) << entry.path() << ": " << line;
        }
    }
}

// Files whose lines touch the process' environment, as FILE:LINE.
names touches_environment(fs::path const& root) {
    names found;
    std::regex const call(R"(\b(secure_getenv|getenv|setenv|unsetenv|putenv|clearenv|environ)\b(?!"))"), comment(R"(^\s*//)");
    for (auto const& [folder, allowed] : may_include) {
        if (!fs::exists(root / folder)) continue;
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            if (!is_source(entry.path())) continue;
            std::ifstream file(entry.path());
            std::string line;
            for (int number = 1; std::getline(file, line); ++number)
                if (std::regex_search(line, call) && !std::regex_search(line, comment) &&
                    line.find("/environ") == std::string::npos)
                    found.push_back(fs::relative(entry.path(), root).string() + ":" + std::to_string(number));
        }
    }
    return found;
}

// main reads the environment once and passes it down. These files may touch it, and no other.
TEST(layering, the_environment_is_touched_at_the_edge) {
    names const exceptions{
        "base/environment.cpp",              // reads it
        "bench/peers/oneccl_mpi.h",          // part of a program of its own
        "launch/hardware/hwloc_handle.cpp",  // hwloc learns only from it where its plugins are
        "launch/system/home_folder.cpp",     // the PMIx library asks it for HOME
        "pmix/server/library_server.cpp",    // the PMIx library's server has no other settings
    };
    for (auto const& place : touches_environment(MUSTER_SOURCE_DIR))
        EXPECT_TRUE(std::ranges::find(exceptions, place.substr(0, place.find(':'))) != exceptions.end())
            << place << " touches the process' environment; take a muster::environment as a parameter";
}

TEST(layering, a_touch_of_the_environment_is_found) {
    scratch_tree const tree;
    fs::create_directories(tree.root / "comm");
    std::ofstream(tree.root / "comm/bad.cpp") << "// getenv in words\nauto a = std::getenv(\"A\");\n::unsetenv(\"B\");\n"
                                                 "read(\"/proc/self/environ\");\nfor (char** one = environ; *one; ++one) {}\n";
    EXPECT_EQ(touches_environment(tree.root), (names{"comm/bad.cpp:2", "comm/bad.cpp:3", "comm/bad.cpp:5"}));
}

TEST(layering, an_include_of_a_higher_folder_is_found) {
    scratch_tree const tree;
    tree.add("base/bad.hpp", "comm/communicator.hpp");
    tree.add("launch/run/good.hpp", "base/error.hpp");
    EXPECT_EQ(violations(tree.root), names{"base/bad.hpp:2: base/ may not include comm/"});
}

TEST(layering, an_include_of_a_higher_floor_is_found) {
    scratch_tree const tree;
    tree.add("launch/placement/good.hpp", "launch/hardware/gpu.hpp");
    tree.add("launch/placement/up.hpp", "launch/run/run_job.hpp");
    tree.add("launch/scheduler/beside.hpp", "launch/hardware/gpu.hpp");
    tree.add("launch/cellar/unknown.hpp", "launch/hardware/gpu.hpp");
    tree.add("comm/exchange/request/up.hpp", "comm/exchange/core/exchange_core.hpp");
    tree.add("comm/exchange/core/good.hpp", "comm/exchange/request/tensor_shape.hpp");
    tree.add("comm/tensor/up.hpp", "comm/exchange/request/tensor_shape.hpp");
    auto found = violations(tree.root);
    std::ranges::sort(found);
    EXPECT_EQ(
        found,
        (names{"comm/exchange/request/up.hpp:2: comm/exchange/request (floor 0) may not include comm/exchange/core (floor 4)",
               "comm/tensor/up.hpp:2: comm/tensor (floor 0) may not include comm/exchange (floor 7)",
               "launch/cellar/unknown.hpp:2: launch/cellar/ has no floor: add it to floors_of in this test",
               "launch/placement/up.hpp:2: launch/placement (floor 3) may not include launch/run (floor 9)",
               "launch/scheduler/beside.hpp:2: launch/scheduler (floor 1) may not include launch/hardware (floor 1)"}));
}

TEST(layering, an_include_of_a_part_is_found) {
    scratch_tree const tree;
    fs::create_directories(tree.root / "packaging");
    std::ofstream(tree.root / "packaging/parts.txt") << "# the parts\njobs launch/jobs/ launch/scripts/\ndata io/\n";
    tree.add("launch/jobs/good.hpp", "launch/scripts/script_plan.hpp");
    tree.add("launch/commands/bad.hpp", "launch/scripts/script_plan.hpp");
    tree.add("launch/scripts/bad.hpp", "io/dataset/dataset.hpp");
    auto found = crossings(tree.root);
    std::ranges::sort(found);
    EXPECT_EQ(found, (names{"launch/commands/bad.hpp: launch/scripts/script_plan.hpp is of the part jobs",
                            "launch/scripts/bad.hpp: io/dataset/dataset.hpp is of the part data"}));
}

TEST(layering, a_crowded_folder_is_found) {
    scratch_tree const tree;
    for (int i = 0; i < most_files_in_a_folder; ++i) tree.add("io/dataset/f" + std::to_string(i) + ".hpp", "base/error.hpp");
    EXPECT_EQ(crowded_folders(tree.root), names{});
    tree.add("io/dataset/one_more.cpp", "base/error.hpp");
    EXPECT_EQ(crowded_folders(tree.root), names{"io/dataset/: 26 files"});
}

}  // namespace
