#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/hardware/hwloc_handle.hpp"
#include "launch/hardware/sysfs.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

/// Two packages of a NUMA node each, two cores of two threads in each package: core k has the CPUs k and k + 4.
class two_packages {
  public:
    two_packages() : root_(fs::temp_directory_path() / ("muster-cores-" + std::to_string(::getpid()))) {
        for (int cpu = 0; cpu < 8; ++cpu) {
            auto const topology = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
            write(topology + "core_cpus_list", std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
            write(topology + "physical_package_id", std::to_string(cpu % 4 / 2));
        }
        write("sys/devices/system/node/online", "0-1");
        write("sys/devices/system/node/node0/cpulist", "0-1,4-5");
        write("sys/devices/system/node/node1/cpulist", "2-3,6-7");
        write("proc/self/status", "Name:\tmuster\nMems_allowed:\t00000003\nMems_allowed_list:\t0-1");
    }
    ~two_packages() {
        std::error_code ignored;
        fs::remove_all(root_, ignored);
    }
    two_packages(two_packages const&) = delete;
    two_packages& operator=(two_packages const&) = delete;

    void write(std::string const& name, std::string const& text) const {
        fs::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text << '\n';
    }
    void remove(std::string const& name) const { fs::remove(root_ / name); }
    std::string of_cpu(int cpu, std::string const& name) const {
        return "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name;
    }
    auto read(std::string const& allowed) const { return sysfs(root_.string()).read_cores(cpuset::from_list(allowed)); }

  private:
    fs::path const root_;
};

TEST(sysfs_cores, have_their_threads_node_and_package) {
    auto const cores = two_packages().read("0-7");
    ASSERT_TRUE(cores);
    EXPECT_EQ(*cores, (std::vector<core>{{{{0, 4}}, 0, 0}, {{{1, 5}}, 0, 0}, {{{2, 6}}, 1, 1}, {{{3, 7}}, 1, 1}}));
}

TEST(sysfs_cores, are_those_that_are_allowed) {
    auto const cores = two_packages().read("3,5-7");
    ASSERT_TRUE(cores);
    EXPECT_EQ(*cores, (std::vector<core>{{{{5}}, 0, 0}, {{{3, 7}}, 1, 1}, {{{6}}, 1, 1}}));
}

TEST(sysfs_cores, under_the_names_of_earlier_kernels) {
    two_packages const machine;
    machine.remove(machine.of_cpu(1, "core_cpus_list"));
    machine.write(machine.of_cpu(1, "thread_siblings_list"), "1,5");
    auto const cores = machine.read("1,5");
    ASSERT_TRUE(cores);
    EXPECT_EQ(*cores, (std::vector<core>{{{{1, 5}}, 0, 0}}));
}

TEST(sysfs_cores, are_not_known_where_a_file_is_missing_or_says_something_else) {
    two_packages const machine;
    auto const check = [&](std::string const& name, std::string const& text, std::string const& right) {
        EXPECT_TRUE(machine.read("0-7")) << name;
        machine.write(name, text);
        EXPECT_FALSE(machine.read("0-7")) << name << ": " << text;
        machine.write(name, right);
    };
    check(machine.of_cpu(2, "core_cpus_list"), "nonsense", "2,6");
    check(machine.of_cpu(2, "core_cpus_list"), "3,7", "2,6");
    check(machine.of_cpu(2, "core_cpus_list"), "1-2", "2,6");
    check(machine.of_cpu(2, "physical_package_id"), "-1", "1");
    check("sys/devices/system/node/online", "", "0-1");
    check("sys/devices/system/node/node1/cpulist", "2-3", "2-3,6-7");
    check("proc/self/status", "Mems_allowed_list:\t0", "Mems_allowed_list:\t0-1");
    check("proc/self/status", "Mems_allowed_list:\tnonsense", "Mems_allowed_list:\t0-1");
    check("proc/self/status", "Name:\tmuster", "Mems_allowed_list:\t0-1");
    EXPECT_FALSE(machine.read("8"));
}

TEST(sysfs_cores, of_this_machine_are_those_that_hwloc_finds) {
    auto const allowed = current_affinity();
    auto const cores = sysfs().read_cores(allowed);
    if (!cores) GTEST_SKIP() << "the kernel does not tell them here";
    auto const hwloc = make_hwloc(hwloc_depth::cores);
    load_here(hwloc.get());
    EXPECT_EQ(*cores, read_cores(hwloc.get(), &allowed));
    load_here(hwloc.get());  // again: nothing happens
}

}  // namespace
}  // namespace muster
