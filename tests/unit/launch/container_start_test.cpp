#include "launch/observe/container_start.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

using pids = std::vector<pid_t>;

TEST(container_start, is_over_when_a_program_of_its_own_runs) {
    std::vector<process_place> processes{{10, 1, "starter"}, {11, 10, "starter"}, {12, 10, "squashfuse_ll"}};
    EXPECT_EQ(find_opening_containers(processes), (pids{10})) << "the first process of each";
    EXPECT_EQ(find_container_programs(10, processes), pids{});
    processes.push_back({13, 11, "python3"});
    EXPECT_EQ(find_opening_containers(processes), pids{});
    EXPECT_EQ(find_container_programs(10, processes), (pids{13}));
}

TEST(container_start, is_seen_of_each_below_scripts_too) {
    std::vector<process_place> const processes{{10, 1, "bash"},          {11, 10, "apptainer"}, {20, 1, "singularity"},
                                               {21, 20, "starter-suid"}, {30, 1, "apptainer"},  {31, 30, "appinit"},
                                               {32, 31, "a.out"},        {40, 1, "python3"}};
    EXPECT_EQ(find_opening_containers(processes), (pids{11, 20}));
    EXPECT_EQ(find_container_programs(30, processes), (pids{32}));
    EXPECT_EQ(find_opening_containers({}), pids{});
}

}  // namespace
}  // namespace muster
