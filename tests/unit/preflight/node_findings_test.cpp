// What is wrong with nodes, by what they say of themselves.
#include "launch/preflight/probed_node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t gib = 1u << 30;

node_limits wanted() {
    node_limits e;
    e.version = "1.0";
    return e;
}

/// node0, node1, …, with nothing wrong.
std::vector<probed_node> good_nodes(int count) {
    std::vector<probed_node> nodes;
    for (int n = 0; n < count; ++n) {
        auto& node = nodes.emplace_back();
        node.name = node.address = "node" + std::to_string(n);
        node.gpus_expected = 2;
        auto& r = node.report.emplace();
        r.version = "1.0";
        r.host = node.name;
        for (int g = 0; g < 2; ++g) {
            auto& gpu = r.gpus.emplace_back();
            gpu.index = g;
            gpu.uuid = "GPU-" + std::to_string(10 * n + g);
            gpu.memory_bytes = 80 * gib;
            gpu.used_bytes = gib;
            gpu.ecc_errors = 0;
        }
        r.folders = {{"/dev/shm", gib, ""}, {"/tmp", gib, ""}};
        if (n > 0) node.towards = "node0";
    }
    return nodes;
}

/// What is wrong, as a line each; notes begin with "note: ".
std::vector<std::string> lines(std::vector<probed_node> const& nodes) {
    std::vector<std::string> all;
    for (auto const& f : find_faults(nodes, wanted()))
        all.push_back((f.how == severity::note ? "note: " : "") + nodes[static_cast<std::size_t>(f.node)].name + ": " + f.what);
    return all;
}

TEST(find_faults, finds_nothing_where_all_is_well) {
    EXPECT_THAT(lines(good_nodes(4)), IsEmpty());
    EXPECT_EQ(first_good(good_nodes(4), wanted()), 0);
    EXPECT_THAT(find_faults({}, wanted()), IsEmpty());
    EXPECT_EQ(first_good({}, wanted()), -1);
}

TEST(find_faults, names_nodes_that_do_not_answer) {
    auto nodes = good_nodes(3);
    nodes[0].report.reset();
    nodes[0].silence = "did not answer within 5 s";
    EXPECT_THAT(lines(nodes), ElementsAre("node0: it did not answer within 5 s"));
    EXPECT_EQ(first_good(nodes, wanted()), 1);
}

TEST(find_faults, asks_nothing_more_of_another_version) {
    auto nodes = good_nodes(2);
    nodes[1].report.emplace();
    nodes[1].report->version = "0.9";
    EXPECT_THAT(lines(nodes), ElementsAre("node1: has muster 0.9, and this is muster 1.0"));
}

TEST(find_faults, program_and_folder) {
    auto nodes = good_nodes(2);
    nodes[1].report->program_fault = "no program /tmp/x";
    nodes[1].report->working_dir_fault = "No such file or directory";
    nodes[1].report->machine_fault = "CUDA_VISIBLE_DEVICES=7";
    nodes[1].report->gpus.clear();  // a consequence: not said again
    nodes[1].report->unfinished = {"host names"};
    EXPECT_THAT(lines(nodes), ElementsAre("node1: cannot use the working directory there: No such file or directory",
                                          "node1: no program /tmp/x", "node1: CUDA_VISIBLE_DEVICES=7",
                                          "node1: no answer in time about host names"));
}

TEST(find_faults, space) {
    auto nodes = good_nodes(3);
    nodes[0].report->folders[0].free_bytes = 4096;
    nodes[1].report->folders[0].free_bytes = 64u << 20;
    nodes[2].report->folders[1] = {"/tmp", 0, "Read-only file system"};
    EXPECT_THAT(lines(nodes), ElementsAre("node0: /dev/shm has only 4 KiB free", "note: node1: /dev/shm has only 64 MiB free",
                                          "node2: cannot write to /tmp: Read-only file system"));
    auto least = good_nodes(1);
    least[0].report->folders = {{"/dev/shm", 256u << 20, ""}, {"/tmp", 16u << 20, ""}};
    EXPECT_THAT(lines(least), ElementsAre("note: node0: /tmp has only 16 MiB free"));
    least[0].report->folders = {{"/dev/shm", 15u << 20, ""}, {"/tmp", 15u << 20, ""}};
    EXPECT_THAT(lines(least), ElementsAre("node0: /dev/shm has only 15 MiB free", "node0: /tmp has only 15 MiB free"));
}

TEST(find_faults, gpus_that_are_missing) {
    auto nodes = good_nodes(3);
    nodes[0].report->gpus.pop_back();
    nodes[0].report->gpu_note = "NVML, driver 535";
    nodes[1].gpus_expected = std::nullopt;
    nodes[1].report->gpus.clear();
    nodes[2].gpus_expected = 1;  // more than expected is no fault
    EXPECT_THAT(lines(nodes), ElementsAre("node0: has 1 of the 2 GPUs that the job has there (NVML, driver 535)"));
}

TEST(find_faults, state_of_gpus) {
    auto nodes = good_nodes(1);
    auto& gpus = nodes[0].report->gpus;
    gpus[0].used_bytes = 31 * gib;
    gpus[0].processes = {"4711 (python3)"};
    gpus[1].processes = {"12"};
    gpus[1].ecc_errors = 3;
    gpus[1].needs_reset = true;
    gpus[1].slowed = "heat (hardware)";
    EXPECT_THAT(lines(nodes), ElementsAre("node0: GPU 0 (GPU-0) has 31 GiB of its 80 GiB in use by 4711 (python3)",
                                          "node0: GPU 1 (GPU-1) has had 3 memory errors that could not be corrected",
                                          "node0: GPU 1 (GPU-1) waits for a reset, to replace a part of its memory",
                                          "note: node0: GPU 1 (GPU-1) is in use by 12",
                                          "note: node0: GPU 1 (GPU-1) is slowed down: heat (hardware)"));
}

TEST(find_faults, unknown_state_of_gpus_is_no_fault) {
    auto nodes = good_nodes(1);
    for (auto& gpu : nodes[0].report->gpus) gpu = gpu_state{};
    EXPECT_THAT(lines(nodes), IsEmpty());
}

TEST(find_faults, network_and_clock) {
    auto nodes = good_nodes(3);
    nodes[1].connect_fault = "10.0.0.1:4711: Connection refused";
    nodes[1].clock_ahead_s = 2.5;
    nodes[1].clock_error_s = 0.6;  // it may be less than the limit
    nodes[2].clock_ahead_s = -90;
    nodes[2].report->address_fault = "--network-interface ib0: no such interface";
    EXPECT_THAT(lines(nodes), ElementsAre("node1: cannot connect to node0: 10.0.0.1:4711: Connection refused",
                                          "node2: --network-interface ib0: no such interface",
                                          "note: node2: its clock is 90 s behind this one"));
}

TEST(find_faults, one_machine_under_two_names) {
    auto nodes = good_nodes(3);
    nodes[2].report->gpus = nodes[0].report->gpus;
    EXPECT_THAT(lines(nodes), ElementsAre("node2: is the same machine as node0: both have GPU GPU-0"));
}

TEST(find_faults, a_name_that_most_do_not_know_is_its_owners_fault) {
    auto nodes = good_nodes(4);
    for (int n : {0, 1, 2}) nodes[static_cast<std::size_t>(n)].report->unresolved = {{"node3", "Name or service not known"}};
    EXPECT_THAT(lines(nodes), ElementsAre("node3: its name does not resolve on node0, node1, node2"));
}

TEST(find_faults, a_name_that_one_does_not_know_is_its_own_fault) {
    auto nodes = good_nodes(4);
    nodes[1].name = "user@node1";
    nodes[2].report->unresolved = {{"node1", "Name or service not known"}};
    EXPECT_THAT(lines(nodes), ElementsAre("node2: cannot resolve user@node1"));
}

TEST(find_faults, who_knows_hardly_anybody_does_not_count_against_the_others) {
    auto nodes = good_nodes(4);
    nodes[1].report->unresolved = {{"node0", "?"}, {"node2", "?"}, {"node3", "?"}};
    EXPECT_THAT(lines(nodes), ElementsAre("node1: cannot resolve the names of 3 of the 3 other nodes, such as node0"));
}

TEST(find_faults, its_own_name_is_nobody_elses_business) {
    auto nodes = good_nodes(2);
    nodes[1].report->unresolved = {{"node1", "?"}};
    EXPECT_THAT(lines(nodes), IsEmpty());
}

TEST(find_faults, equal_findings_are_one_line) {
    auto nodes = good_nodes(12);
    for (auto& node : nodes) node.report->folders = {{"/dev/shm", 0, ""}};
    nodes[1].report->folders = {{"/dev/shm", 4096, ""}};
    auto const found = find_faults(nodes, wanted());
    auto const text = describe_findings(found, nodes, severity::error);
    ASSERT_EQ(text.size(), 2u);
    EXPECT_THAT(text[0], HasSubstr("/dev/shm has only 0 B free; remove"));
    EXPECT_THAT(text[0], HasSubstr("node0, node2, node3, node4 and 7 more nodes: "));
    EXPECT_THAT(text[1], HasSubstr("node1: /dev/shm has only 4 KiB free"));
    EXPECT_THAT(describe_findings(found, nodes, severity::note), IsEmpty());
}

TEST(find_faults, lists_of_nodes_are_cut) {
    auto nodes = good_nodes(100);
    for (int n = 0; n < 60; ++n) nodes[static_cast<std::size_t>(n)].report->unresolved = {{"node99", "?"}};
    EXPECT_THAT(lines(nodes), ElementsAre("node99: its name does not resolve on node0, node1, node2, node3 and 56 more nodes"));
}

TEST(find_faults, of_many_lines_the_first_are_shown) {
    auto nodes = good_nodes(3000);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        nodes[n].report.reset();
        nodes[n].silence = "did not answer: ssh: connect to host " + nodes[n].name;
    }
    auto const text = describe_findings(find_faults(nodes, wanted()), nodes, severity::error);
    ASSERT_EQ(text.size(), 17u);
    EXPECT_THAT(text[15], HasSubstr("node15: it did not answer: ssh: connect to host node15;"));
    EXPECT_EQ(text[16], "and 2984 more findings; muster doctor --allocation --json has each");
}

}  // namespace
}  // namespace muster
