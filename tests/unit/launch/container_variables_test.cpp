#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "jobscripts/script_request.hpp"
#include "launch/ranks/rank_variables.hpp"

namespace muster {
namespace {

using words = std::vector<std::string>;

environment with_server_in(std::string const& folder) {
    environment own;
    own.set("PMIX_SERVER_TMPDIR", folder);
    return own;
}

TEST(container_variables, show_the_engine_s_folder) {
    auto own = with_server_in("/usr/share//");  // any folder that is there
    set_container_variables(own, {"/opt/bin/apptainer", "exec", "--nv", "image.sif", "true"});
    EXPECT_EQ(own.get_or("APPTAINER_BIND", "none"), "/usr/share");
    EXPECT_EQ(own.get_or("UCX_POSIX_USE_PROC_LINK", "none"), "n");

    own = with_server_in("/usr/share");
    own.set("SINGULARITY_BIND", "/data:/data:ro");
    own.set("UCX_POSIX_USE_PROC_LINK", "y");
    set_container_variables(own, {"muster", "stage", "out", "a", "b", "--", "singularity", "run", "image.sif"});
    EXPECT_EQ(own.get_or("SINGULARITY_BIND", "none"), "/data:/data:ro,/usr/share");
    EXPECT_EQ(own.get_or("UCX_POSIX_USE_PROC_LINK", "none"), "y");
    EXPECT_FALSE(own.has("APPTAINER_BIND"));
}

TEST(container_variables, name_no_folder_twice_nor_one_that_is_not_there) {
    auto own = with_server_in("/usr/share");
    set_container_variables(own, {"apptainer", "exec", "--bind", "/usr/share:/x", "image.sif", "true"});
    EXPECT_FALSE(own.has("APPTAINER_BIND"));
    for (auto const* folder : {"", "/", "relative", "/usr/share/none-of-that", "/tmp", "/dev/shm"}) {
        own = with_server_in(folder);
        set_container_variables(own, {"apptainer", "exec", "image.sif", "true"});
        EXPECT_EQ(own.get_or("APPTAINER_BIND", "none"), "none") << folder;
    }
}

TEST(container_variables, are_for_containers_only) {
    for (auto const& command : {words{"python3", "train.py"}, words{"apptainer"}, words{"apptainer", "instance", "exec"},
                                words{"my-apptainer", "exec", "x"}, words{"echo", "exec"}}) {
        auto own = with_server_in("/usr/share");
        auto const before = own;
        set_container_variables(own, command);
        EXPECT_EQ(own, before) << command.front();
    }
}

TEST(container_folders, are_shown_by_themselves_or_bound) {
    EXPECT_TRUE(is_shown_in_containers("/tmp/data"));
    EXPECT_TRUE(is_shown_in_containers("/dev/shm"));
    EXPECT_FALSE(is_shown_in_containers("/tmpdata"));
    EXPECT_TRUE(is_to_be_bound("/local/scratch"));
    for (auto const* folder : {"", "data", "/tmp", "/a,b", "/a:b"}) EXPECT_FALSE(is_to_be_bound(folder)) << folder;
}

TEST(interface_variables, name_the_interface_to_every_library) {
    auto const sys = std::filesystem::path(testing::TempDir()) / ("net." + std::to_string(::getpid()));
    std::filesystem::create_directories(sys / "eth0");
    std::filesystem::create_directories(sys / "ib0" / "device" / "infiniband" / "mlx5_1");
    std::ofstream(sys / "ib0" / "dev_port") << "0\n";
    EXPECT_TRUE(interface_variables("", sys.string()).empty());
    std::map<std::string, std::string> ethernet, fabric;
    for (auto const& [name, value] : interface_variables("eth0", sys.string())) ethernet[name] = value;
    for (auto const& [name, value] : interface_variables("ib0", sys.string())) fabric[name] = value;
    for (auto const* name : {"NCCL_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include", "FI_TCP_IFACE", "UCX_NET_DEVICES"})
        EXPECT_EQ(ethernet[name], "eth0") << name;
    EXPECT_EQ(fabric["UCX_NET_DEVICES"], "mlx5_1:1,ib0") << "UCX keeps the fabric";
    EXPECT_EQ(fabric["OMPI_MCA_btl_tcp_if_include"], "ib0");
    std::filesystem::remove_all(sys);
}

}  // namespace
}  // namespace muster
