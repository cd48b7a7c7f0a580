// Real machines' shapes, held against what their sites publish.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/site/site_placement.hpp"
#include "tests/unit/launch/machine_files.hpp"

namespace muster {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::vector<std::string> cores_of(std::vector<binding> const& ranks) {
    std::vector<std::string> lists;
    for (auto const& b : ranks) lists.push_back(b.cores.to_list());
    return lists;
}

std::vector<std::string> nics_of(std::vector<binding> const& ranks) {
    std::vector<std::string> names;
    for (auto const& b : ranks) names.push_back(b.nic.value_or("-"));
    return names;
}

std::vector<int> gpus_of(std::vector<binding> const& ranks) {
    std::vector<int> indices;
    for (auto const& b : ranks) indices.push_back(b.device ? b.device->index : -1);
    return indices;
}

TEST(machines, polaris_binds_as_its_site_says) {
    auto const published = site_of("polaris").node;
    auto const by_itself = bind_ranks(machine_of("polaris"), {}, 4);
    auto const by_site = bind_ranks(machine_of("polaris"), apply_site({}, published), 4);
    EXPECT_THAT(cores_of(by_itself), ElementsAreArray(published.gpu_cpus));
    EXPECT_EQ(cores_of(by_site), cores_of(by_itself));
    EXPECT_THAT(gpus_of(by_site), ElementsAre(0, 1, 2, 3));  // LOCAL_RANK stays the index of the rank's device
    EXPECT_EQ(by_site[0].why, "8 cores of NUMA 3, next to the GPU, as the site says");
    for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ(by_itself[r].numa, published.gpu_numa[r]);
    // The first card is nearest to GPU 3, the second one to GPU 1; the other two GPUs have none of their own.
    EXPECT_EQ(by_itself[3].nic, "hsn0");
    EXPECT_EQ(by_itself[1].nic, "hsn1");
    EXPECT_THAT(nics_of(by_itself), ElementsAre("hsn0", "hsn1", "hsn1", "hsn0"));
}

TEST(machines, polaris_without_localities_binds_by_the_site_alone) {
    auto const blind = with_gpus(machine_of("polaris"), "4");
    EXPECT_THAT(cores_of(bind_ranks(blind, {}, 4)), ElementsAre("0-7,32-39", "8-15,40-47", "16-23,48-55", "24-31,56-63"));
    auto const published = site_of("polaris").node;
    EXPECT_THAT(cores_of(bind_ranks(blind, apply_site({}, published), 4)), ElementsAreArray(published.gpu_cpus));
    EXPECT_THAT(cores_of(bind_ranks(with_gpus(machine_of("polaris"), "numa:3,2,1,0"), {}, 4)),
                ElementsAreArray(published.gpu_cpus));
}

TEST(machines, ranks_of_perlmutter_are_nearest_to_gpu_3_minus_local_rank) {
    // srun --ntasks-per-node=4 --cpus-per-task=32: rank r on cores 16r to 16r+15, nearest GPU 3 - r.
    auto const ranks = bind_ranks(machine_of("perlmutter"), {}, 4);
    auto const by_site = bind_ranks(with_gpus(machine_of("perlmutter"), "4"), apply_site({}, site_of("perlmutter").node), 4);
    for (int published = 0; published < 4; ++published) {
        auto const gpu = static_cast<std::size_t>(3 - published);
        int const first = 16 * published;
        auto const cores = std::to_string(first) + "-" + std::to_string(first + 15) + "," + std::to_string(first + 64) + "-" +
                           std::to_string(first + 79);
        EXPECT_EQ(ranks[gpu].cores.to_list(), cores);
        EXPECT_EQ(by_site[gpu].cores.to_list(), cores);
    }
    EXPECT_EQ(bind_ranks(machine_of("perlmutter"), {.smt = false}, 4)[3].cores.to_list(), "0-15");
}

TEST(machines, a_gpu_map_turns_the_order_round) {
    auto const ranks = bind_ranks(machine_of("perlmutter"), {.gpu_map = {3, 2, 1, 0}}, 4);
    EXPECT_THAT(gpus_of(ranks), ElementsAre(3, 2, 1, 0));
    EXPECT_EQ(ranks[0].cores.to_list(), "0-15,64-79");
    EXPECT_EQ(ranks[0].device_index, 3);
    EXPECT_THAT(ranks[0].why, HasSubstr("GPU by the map"));
}

TEST(machines, frontier_binds_as_its_site_says) {
    auto const published = site_of("frontier");
    EXPECT_THAT(cores_of(bind_ranks(machine_of("frontier"), {.smt = false}, 8)), ElementsAreArray(published.node.gpu_cpus));
    // The first core of each L3 cache is the system's: 7 are left for a rank.
    placement_request wanted = apply_site({.smt = false}, published.node);
    wanted.reserved_cpus = "0,8,16,24,32,40,48,56";
    EXPECT_THAT(cores_of(bind_ranks(machine_of("frontier"), wanted, 8)),
                ElementsAre("49-55", "57-63", "17-23", "25-31", "1-7", "9-15", "33-39", "41-47"));
    // LUMI publishes the same as map_cpu:49,57,17,25,1,9,33,41 for local ranks whose GPU is their own number.
    wanted.bind_to = bind_policy::core;
    EXPECT_THAT(cores_of(bind_ranks(machine_of("frontier"), wanted, 8)),
                ElementsAre("49", "57", "17", "25", "1", "9", "33", "41"));
    auto lumi = site_of("lumi-g").node;
    EXPECT_EQ(lumi.topology, "frontier");
    lumi.topology.clear();
    lumi.count = published.node.count;
    EXPECT_EQ(lumi, published.node);
}

TEST(machines, ranks_of_a_gh200_node_get_a_processor_each) {
    auto const ranks = bind_ranks(machine_of("gh200"), {}, 4);
    auto const published = site_of("deltaai").node;
    EXPECT_THAT(cores_of(ranks), ElementsAreArray(published.gpu_cpus));
    EXPECT_THAT(nics_of(ranks), ElementsAre("hsn0", "hsn1", "hsn2", "hsn3"));
    // The GPUs' own memory is a NUMA node too (4, 12, …), of the same cores.
    for (int r = 0; r < 4; ++r) {
        EXPECT_EQ(ranks[static_cast<std::size_t>(r)].numa, r);
        EXPECT_EQ(ranks[static_cast<std::size_t>(r)].device->numa, r);
    }
    EXPECT_EQ(ranks[3].device->pci, "0039:01:00.0");
}

TEST(machines, gpus_of_a_dgx_share_their_numa_node_and_have_a_card_each) {
    auto const machine = machine_of("dgx-a100");
    ASSERT_EQ(machine.gpus.size(), 8u);  // the server's own display is none
    auto const ranks = bind_ranks(machine, {}, 8);
    EXPECT_THAT(cores_of(ranks), ElementsAre("48-55,176-183", "56-63,184-191", "16-23,144-151", "24-31,152-159",
                                             "112-119,240-247", "120-127,248-255", "80-87,208-215", "88-95,216-223"));
    EXPECT_THAT(nics_of(ranks), ElementsAre("ib0", "ib1", "ib2", "ib3", "ib4", "ib5", "ib6", "ib7"));
    auto const whole = bind_ranks(machine, {.bind_to = bind_policy::gpu}, 8);
    EXPECT_EQ(whole[0].cores.to_list(), "48-63,176-191");
    EXPECT_EQ(whole[0].why, "the 16 cores of NUMA 3, next to the GPU (--bind-to gpu)");
    EXPECT_EQ(bind_ranks(machine, {.bind_to = bind_policy::socket}, 8)[4].cores.to_list(), "64-127,192-255");
    auto const shared = bind_ranks(machine, {.ranks_per_gpu = 2, .cpus_per_rank = 4}, 16);
    EXPECT_THAT(gpus_of(shared), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
    EXPECT_EQ(shared[1].cores.to_list(), "52-55,180-183");
    EXPECT_EQ(shared[1].nic, shared[0].nic);
    EXPECT_THAT(shared[1].why, HasSubstr("shares its GPU with 1 other rank (--ranks-per-gpu 2)"));
}

TEST(machines, a_laptop_s_graphics_are_no_gpu_for_ranks) {
    auto const machine = machine_of("laptop");
    EXPECT_TRUE(machine.gpus.empty());
    auto const ranks = bind_ranks(machine, {}, 8);
    EXPECT_EQ(ranks[0].cores.to_list(), "0,8");
    EXPECT_THAT(nics_of(ranks), Each("enp0s31f6"));
}

TEST(gpu_specs, say_where_gpus_are) {
    auto const machine = machine_of("polaris");
    EXPECT_EQ(with_gpus(machine, "4").gpus.size(), 4u);
    EXPECT_EQ(with_gpus(machine, "4").gpus[3].numa, -1);
    EXPECT_TRUE(with_gpus(machine, "none").gpus.empty());
    EXPECT_EQ(with_gpus(machine, "numa:1,1").gpus[1].numa, 1);
    EXPECT_EQ(with_gpus(machine, "cpus:24-31,56-63/0-7").gpus[0].near.to_list(), "24-31,56-63");
    EXPECT_THAT(cores_of(bind_ranks(with_gpus(machine, "cpus:24-31,56-63/0-7"), {}, 2)), ElementsAre("24-31,56-63", "0-7,32-39"));
    for (auto const* bad : {"", "-1", "4.5", "many", "numa:", "numa:4", "numa:0,,1", "numa:x", "cpus:", "cpus:64", "cpus:0-7/",
                            "cpus:7-0", "1025", "99999999999999999999"}) {
        try {
            with_gpus(machine, bad);
            ADD_FAILURE() << bad;
        } catch (parse_error const& e) {
            EXPECT_EQ(e.code(), errc::usage);
            EXPECT_THAT(e.what(), HasSubstr("^"));
        }
    }
}

TEST(sites, give_their_map_and_leave_what_the_user_says) {
    site_node node;
    node.nearest_gpu = {1, 0};
    node.cores = 4;
    EXPECT_THAT(apply_site({}, node).gpu_cpus, ElementsAre("2-3", "0-1"));
    node.cpus = 8;
    EXPECT_THAT(apply_site({}, node).gpu_cpus, ElementsAre("2-3,6-7", "0-1,4-5"));
    EXPECT_THAT(apply_site({.gpu_cpus = {"0", "1"}}, node).gpu_cpus, ElementsAre("0", "1"));
    node.cores = 5;
    EXPECT_TRUE(apply_site({}, node).gpu_cpus.empty());
    EXPECT_EQ(apply_site({}, site_node{}), placement_request{});
    EXPECT_EQ(with_site({}, "", {}), placement_request{});
    EXPECT_THROW(with_site({}, "no-such-site", {{"MUSTER_SITE_PATH", "/nonexistent"}}), error);
}

TEST(sites, of_whole_nodes_tell_their_gpus) {
    environment const here{{"MUSTER_SITE_PATH", MUSTER_SOURCE_DIR "/site-configs"}};
    EXPECT_EQ(choice_with_site({}, "polaris", here).gpus_of_each, 4);
    EXPECT_EQ(choice_with_site({}, "generic-pbs", here), allocation_choice{});
    EXPECT_EQ(choice_with_site({}, "", here), allocation_choice{});
}

TEST(sites, are_not_believed_where_the_node_has_other_gpus) {
    // A job that sees two of four GPUs counts them from 0: the site's map by number would be wrong.
    auto machine = machine_of("polaris");
    machine.gpus.erase(machine.gpus.begin(), machine.gpus.begin() + 2);
    for (auto& g : machine.gpus) g.index -= 2;
    machine.gpus_in_node = 2;
    auto const wanted = apply_site({}, site_of("polaris").node);
    auto const ranks = bind_ranks(machine, wanted, 2);
    EXPECT_THAT(cores_of(ranks), ElementsAre("8-15,40-47", "0-7,32-39"));
    EXPECT_THAT(binding_notes(machine, wanted, ranks), ElementsAre(HasSubstr("the site's map is of 4")));
}

}  // namespace
}  // namespace muster
