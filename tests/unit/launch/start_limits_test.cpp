#include "launch/ranks/start_limits.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace muster {
namespace {

using testing::HasSubstr;

TEST(start_limits, stop_what_cannot_run) {
    start_limits limits;
    EXPECT_EQ(limit_fault(1'000'000, 4, limits), std::nullopt);
    limits.open_files = 1024;
    EXPECT_EQ(limit_fault(480, 2, limits), std::nullopt);
    EXPECT_EQ(limit_fault(481, 2, limits),
              "481 ranks need 1026 open files on this node, and the limit of open files (ulimit -n) allows 1024; start fewer, or "
              "raise it");
    limits = {};
    limits.processes_of_user = 100;
    EXPECT_THAT(*limit_fault(101, 2, limits), HasSubstr("ulimit -u"));
    limits = {};
    limits.processes_of_job = 100;
    EXPECT_THAT(*limit_fault(101, 2, limits), HasSubstr("pids.max"));
    limits = {};
    limits.processes = 100;
    EXPECT_THAT(*limit_fault(101, 2, limits), HasSubstr("kernel.pid_max"));
}

TEST(start_limits, are_the_least_of_all_control_groups_above) {
    namespace fs = std::filesystem;
    auto const root = fs::temp_directory_path() / ("muster-start-limits." + std::to_string(::getpid()));
    auto const group = [&](std::string const& path, std::string const& most, std::string const& now) {
        fs::create_directories(root / path);
        std::ofstream(root / path / "pids.max") << most << "\n";
        std::ofstream(root / path / "pids.current") << now << "\n";
    };
    group("a/b", "max", "3");
    group("a", "50", "20");
    EXPECT_EQ(processes_left_in_cgroups("0::/a/b\n", root), 30U);
    EXPECT_EQ(processes_left_in_cgroups("0::/c\n", root), start_limits::none);
    group("pids/job", "7", "9");
    EXPECT_EQ(processes_left_in_cgroups("5:cpu,cpuacct:/\n4:pids:/job\n", root), 0U);
    EXPECT_EQ(processes_left_in_cgroups("", root), start_limits::none);
    EXPECT_EQ(processes_left_in_cgroups("x\n:::\n0::\n", root), start_limits::none);
    fs::remove_all(root);
}

}  // namespace
}  // namespace muster
