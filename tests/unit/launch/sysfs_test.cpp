#include "launch/hardware/sysfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "launch/hardware/pci.hpp"
#include "launch/placement/bind_ranks.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

/// The made-up machines of tests/fixtures/sysfs, unpacked in a temporary folder: see its README.md.
class unpacked_machines {
  public:
    unpacked_machines() {
        std::string name = (fs::temp_directory_path() / "muster-sysfs-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder " + name);
        root_ = name;
        for (auto const& machine : fs::directory_iterator(MUSTER_FIXTURES "/sysfs"))
            if (machine.path().extension() == ".txt") unpack(machine.path(), path(machine.path().stem().string()));
    }
    ~unpacked_machines() {
        std::error_code ignored;
        fs::remove_all(root_, ignored);
    }
    unpacked_machines(unpacked_machines const&) = delete;
    unpacked_machines& operator=(unpacked_machines const&) = delete;
    std::string path(std::string const& name) const { return (root_ / name).string(); }

  private:
    /// A line `PATH: TEXT` is a line of a file, `PATH -> TARGET` a link.
    static void unpack(fs::path const& machine, std::string const& folder) {
        std::ifstream text(machine);
        for (std::string line; std::getline(text, line);) {
            auto const end = line.find_first_of(' ');
            auto const rest = end == std::string::npos ? "" : line.substr(end + 1);
            bool const is_link = rest.starts_with("-> ");
            fs::path const file = folder + (is_link ? line.substr(0, end) : line.substr(0, std::min(end, line.size()) - 1));
            fs::create_directories(file.parent_path());
            if (is_link)
                fs::create_symlink(rest.substr(3), file);
            else
                std::ofstream(file, std::ios::app) << rest << '\n';
        }
    }

    fs::path root_;
};

sysfs machine(std::string const& name) {
    static unpacked_machines const all;
    return sysfs(all.path(name));
}

std::vector<std::string> names_of(std::vector<nic> const& nics) {
    std::vector<std::string> names;
    for (auto const& n : nics) names.push_back(n.name);
    return names;
}

TEST(sysfs, gpus_of_nvidia_that_this_process_may_open) {
    auto const list = machine("nvidia").read_gpus();
    ASSERT_EQ(list.gpus.size(), 2u);
    auto const& first = list.gpus[0];
    EXPECT_EQ(first.pci, "0000:07:00.0");
    EXPECT_EQ(first.uuid, "GPU-11111111-aaaa-0000-0000-000000000000");
    EXPECT_EQ(first.name, "NVIDIA A100-SXM4-40GB");
    EXPECT_EQ(first.numa, 0);
    EXPECT_EQ(first.near.to_list(), "0-7,16-23");
    EXPECT_THAT(first.pci_path, ElementsAre("pci0000:00", "0000:00:01.1", "0000:01:00.0", "0000:02:00.0", "0000:07:00.0"));
    EXPECT_EQ(list.gpus[1].index, 1);
    EXPECT_EQ(list.gpus[1].uuid, "");  // the driver has not read it out yet
    EXPECT_EQ(
        list.note,
        "from /sys/bus/pci/devices; NVIDIA GPU 0000:81:00.0 is not for this process; NVIDIA GPU 0000:82:00.0 has the driver "
        "vfio-pci");
}

TEST(sysfs, gpus_of_amd_in_the_order_of_their_driver) {
    auto const list = machine("amd").read_gpus();
    ASSERT_EQ(list.gpus.size(), 2u);
    EXPECT_EQ(list.gpus[0].pci, "0000:c6:00.0");
    EXPECT_EQ(list.gpus[0].uuid, "GPU-1122334455667788");
    EXPECT_EQ(list.gpus[0].index, 0);
    EXPECT_EQ(list.gpus[1].uuid, "GPU-99aabbccddeeff00");
    EXPECT_EQ(list.gpus[1].vendor, gpu_vendor::amd);
    EXPECT_THAT(list.note, HasSubstr("AMD GPU 0000:05:00.0 is not for this process"));
}

TEST(sysfs, gpus_of_intel_but_no_graphics_of_a_processor) {
    auto const list = machine("intel").read_gpus();
    ASSERT_EQ(list.gpus.size(), 1u);
    EXPECT_EQ(list.gpus[0].pci, "0000:18:00.0");
}

TEST(sysfs, nothing_is_known_of_damaged_files) {
    auto const list = machine("damaged").read_gpus();
    EXPECT_THAT(list.gpus, IsEmpty());
    auto const placed = [](sysfs const& files, std::string const& pci) {
        gpu one{.pci = pci};
        files.set_place(one);
        return one;
    };
    auto const place = placed(machine("damaged"), "0000:07:00.0");
    EXPECT_EQ(place.numa, -1);
    EXPECT_TRUE(place.near.empty());
    EXPECT_EQ(placed(machine("damaged"), "0000:08:00.0").numa, -1);
    EXPECT_EQ(sysfs("/nonexistent").read_gpus().note, "no GPU with its driver in /sys/bus/pci/devices");
    EXPECT_THAT(sysfs("/nonexistent").read_nics(), IsEmpty());
    EXPECT_EQ(placed(sysfs("/nonexistent"), "0000:07:00.0"), gpu{.pci = "0000:07:00.0"});
}

TEST(sysfs, network_cards_by_kind) {
    auto const nics = machine("nvidia").read_nics();
    ASSERT_THAT(names_of(nics), ElementsAre("eth0", "ib0"));  // eth1 is down; so is ib0, but that is InfiniBand
    EXPECT_FALSE(nics[0].fabric);
    EXPECT_TRUE(nics[1].fabric);
    EXPECT_EQ(nics[1].numa, 0);
    EXPECT_THAT(nics[1].pci_path, ElementsAre("pci0000:00", "0000:00:01.1", "0000:01:00.0", "0000:02:08.0", "0000:0c:00.0"));
    auto const slingshot = machine("amd").read_nics();
    ASSERT_THAT(names_of(slingshot), ElementsAre("hsn0"));
    EXPECT_TRUE(slingshot[0].fabric);
    EXPECT_THAT(names_of(machine("intel").read_nics()), ElementsAre("bond0"));
}

TEST(sysfs, the_card_below_the_same_bridge_is_nearest) {
    auto const files = machine("amd");
    topology t;
    t.host = "h";
    t.gpus = files.read_gpus().gpus;
    t.gpus_in_node = 2;
    t.nics = files.read_nics();
    t.nics.insert(t.nics.begin(), {"first", 3, true, {"pci0000:c0", "0000:c0:07.1", "0000:c9:00.0"}});
    for (int c = 48; c < 64; ++c) t.cores.push_back({cpuset{{c}}, 3, 0});
    auto const ranks = bind_ranks(t, {}, 2);
    EXPECT_EQ(ranks[0].nic, "hsn0");   // below a common bridge
    EXPECT_EQ(ranks[1].nic, "first");  // both on its NUMA node: the one that serves nobody yet
    EXPECT_EQ(ranks[1].cores.to_list(), "56-63");
}

TEST(pci, addresses) {
    EXPECT_EQ(pci_address::parse("0000:07:1f.7"), (pci_address{0, 7, 0x1f, 7}));
    EXPECT_EQ(pci_address::parse("00010000:C1:00.0")->text(), "10000:c1:00.0");
    for (auto const* bad : {"", "0000", "0000:07", "0000:07:00", "0000:07:00.8", "0000:07:20.0", "0000:100:00.0", "x:07:00.0",
                            "0000:07:00.0 ", "000000000:07:00.0", "0000:-7:00.0", "::."})
        EXPECT_FALSE(pci_address::parse(bad)) << bad;
}

TEST(pci, which_devices_are_gpus) {
    EXPECT_EQ(gpu_vendor_of(0x10de, 0x030000), gpu_vendor::nvidia);
    EXPECT_EQ(gpu_vendor_of(0x10de, 0x030200), gpu_vendor::nvidia);
    EXPECT_FALSE(gpu_vendor_of(0x10de, 0x040300));  // its sound
    EXPECT_FALSE(gpu_vendor_of(0x10de, 0x068000));  // NVSwitch
    EXPECT_EQ(gpu_vendor_of(0x1002, 0x120000), gpu_vendor::amd);
    EXPECT_FALSE(gpu_vendor_of(0x1002, 0x040300));
    EXPECT_EQ(gpu_vendor_of(0x8086, 0x038000), gpu_vendor::intel);
    EXPECT_FALSE(gpu_vendor_of(0x8086, 0x030000));
    EXPECT_FALSE(gpu_vendor_of(0x1a03, 0x030000));
}

}  // namespace
}  // namespace muster
