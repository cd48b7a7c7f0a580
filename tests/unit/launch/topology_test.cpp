#include "launch/hardware/topology.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "launch/hardware/discover_topology.hpp"

namespace muster {
namespace {

TEST(topologies, of_this_machine) {
    auto const allowed = current_affinity();
    auto const t = discover_topology("here", allowed, {});
    EXPECT_EQ(t.host, "here");
    EXPECT_EQ(t.allowed(), allowed);
    ASSERT_FALSE(t.cores.empty());
}

TEST(topologies, stay_within_what_is_allowed) {
    cpuset const one{{current_affinity().cpus.front()}};
    auto const t = discover_topology("here", one, {});
    ASSERT_EQ(t.cores.size(), 1u);
    EXPECT_EQ(t.allowed(), one);
}

TEST(topologies, are_what_a_variable_of_hwloc_says) {
    environment const variables{{"HWLOC_COMPONENTS", "synthetic"}, {"HWLOC_SYNTHETIC", "package:2 core:1 pu:1"}};
    for (auto const& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    auto const t = discover_topology("here", cpuset{{0, 1}}, variables);
    for (auto const& [name, value] : variables) ::unsetenv(name.c_str());
    EXPECT_EQ(t.cores, (std::vector<core>{{{{0}}, 0, 0}, {{{1}}, 0, 1}}));
}

TEST(topologies, from_files_that_are_none) {
    EXPECT_THROW(load_topology("/no/such.xml"), error);
    auto const path = std::filesystem::temp_directory_path() / ("muster-topology-" + std::to_string(::getpid()) + ".xml");
    std::ofstream(path) << "<topology><object type=\"nonsense\"";
    EXPECT_THROW(load_topology(path), error);
    std::filesystem::remove(path);
}

TEST(topologies, from_a_file) {
    auto const t = load_topology(MUSTER_FIXTURES "/topology/two-packages.xml");
    ASSERT_EQ(t.cores.size(), 8u);
    EXPECT_EQ(t.cores.front().package, 0);
    EXPECT_EQ(t.cores.back().package, 1);
    EXPECT_EQ(t.cores.back().numa, 1);
    EXPECT_EQ(t.cores.front().cpus.cpus.size(), 2u);
}

}  // namespace
}  // namespace muster
