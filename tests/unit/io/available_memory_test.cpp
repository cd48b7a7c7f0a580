#include "io/loader/memory_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test_files.hpp"

namespace muster {
namespace {

class fake_system {
  public:
    void add(std::string const& path, std::string const& text) const {
        std::string const whole = folder_.path("") + path;
        std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
        std::ofstream(whole) << text;
    }
    memory_room room() const { return available_memory(folder_.path("")); }

  private:
    test::scratch folder_;
};

TEST(available_memory, without_a_control_group_is_what_the_machine_has) {
    fake_system const system;
    EXPECT_EQ(system.room().by, "nothing");
    system.add("/proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:    1000 kB\n");
    EXPECT_EQ(system.room().bytes, 1024000u);
    EXPECT_EQ(system.room().by, "the machine");
}

TEST(available_memory, is_what_the_tightest_group_of_version_2_leaves) {
    fake_system const system;
    system.add("/proc/meminfo", "MemAvailable: 1000 kB\n");
    system.add("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    system.add("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    system.add("/sys/fs/cgroup/slurm/job_7/step_0/memory.current", "5000\n");
    EXPECT_EQ(system.room().bytes, 1024000u);
    system.add("/sys/fs/cgroup/slurm/job_7/memory.max", "100000\n");
    system.add("/sys/fs/cgroup/slurm/job_7/memory.current", "60000\n");
    EXPECT_EQ(system.room().bytes, 40000u);
    EXPECT_EQ(system.room().by, "limit of the control group /slurm/job_7");
    system.add("/sys/fs/cgroup/slurm/job_7/memory.stat", "anon 1\ninactive_file 50000\nactive_file 3\n");
    EXPECT_EQ(system.room().bytes, 90000u) << "the kernel drops these pages when memory is wanted";
    system.add("/sys/fs/cgroup/slurm/memory.max", "100\n");
    system.add("/sys/fs/cgroup/slurm/memory.current", "200\n");
    EXPECT_EQ(system.room().bytes, 0u);
}

TEST(available_memory, knows_groups_of_version_1) {
    fake_system const system;
    system.add("/proc/meminfo", "MemAvailable: 1000 kB\n");
    system.add("/proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/job\n0::/\n");
    system.add("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "70000\n");
    system.add("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "50000\n");
    system.add("/sys/fs/cgroup/memory/job/memory.stat", "cache 1\ntotal_inactive_file 10000\n");
    EXPECT_EQ(system.room().bytes, 30000u);
    EXPECT_EQ(system.room().by, "limit of the control group /job");
}

TEST(available_memory, of_this_machine_is_told) {
    EXPECT_GT(available_memory().bytes, 0u);
    EXPECT_LT(available_memory().bytes, std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace muster
