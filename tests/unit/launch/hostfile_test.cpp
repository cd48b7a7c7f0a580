#include "launch/scheduler/hosts/hostfile.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/pbs.hpp"

namespace muster {
namespace {

using entries = std::vector<host_entry>;

std::string fault(std::string_view text, bool file = true) {
    try {
        file ? parse_hostfile(text, "hosts") : parse_hosts(text, "-H");
    } catch (parse_error const& e) {
        EXPECT_EQ(e.code(), file ? errc::config : errc::usage);
        return e.what();
    }
    return "";
}

/// Its place, and its message: "1:3: it names no host".
std::string placed_fault(std::string_view text, bool file = true) {
    try {
        file ? parse_hostfile(text, "hosts") : parse_hosts(text, "-H");
    } catch (parse_error const& e) {
        std::string_view said = e.what();
        said.remove_prefix(said.find(": ") + 2);
        return fmt::format("{}:{}: {}", e.line(), e.column(), said);
    }
    return "";
}

TEST(host_files, of_open_mpi_and_prrte) {
    EXPECT_EQ(
        parse_hostfile("# two nodes\n\nnode1 slots=4 max_slots=8\r\nuser@node2 slots=2 # the small one\r\n\nnode3\n", "hosts"),
        (entries{{"node1", 4, {}}, {"user@node2", 2, {}}, {"node3", {}, {}}}));
}

TEST(host_files, of_deepspeed_hydra_and_with_gpus) {
    EXPECT_EQ(parse_hostfile("worker-0 slots=8\nworker-1:4\nnode[01-02]:2 gpus=1\nn.lab.example gpus=0", "hosts"),
              (entries{{"worker-0", 8, {}}, {"worker-1", 4, {}}, {"node01", 2, 1}, {"node02", 2, 1}, {"n.lab.example", {}, 0}}));
}

TEST(host_files, a_host_without_slots_has_no_ranks) {
    EXPECT_EQ(parse_hostfile("a slots=0\nb:0\nc slots=2\n", "hosts"), (entries{{"c", 2, {}}}));
    EXPECT_EQ(parse_hosts("a:0,b:6,a:1", "-H"), (entries{{"b", 6, {}}, {"a", 1, {}}}));
}

TEST(host_files, may_begin_with_a_byte_order_mark) {
    EXPECT_EQ(parse_hostfile("\xef\xbb\xbf"
                             "a slots=2\n",
                             "hosts"),
              (entries{{"a", 2, {}}}));
    EXPECT_EQ(parse_node_file("\xef\xbb\xbf"
                              "a\na\n",
                              "file")
                  .front()
                  .name,
              "a");
}

TEST(host_files, hosts_named_again_add_slots) {
    EXPECT_EQ(parse_hostfile("a\nb\na\na:2\n", "hosts"), (entries{{"a", 4, {}}, {"b", {}, {}}}));
}

TEST(host_files, faults_are_shown_with_a_caret) {
    EXPECT_EQ(fault("a\nb slots=x\n"), "hosts:2:9: slots must be a number from 0 to 1000000\n  b slots=x\n          ^");
    EXPECT_NE(placed_fault("a slots=0").find("it names no host"), std::string::npos);
    EXPECT_NE(placed_fault("a slots=-1").find("1:9: slots must be a number"), std::string::npos);
    EXPECT_NE(placed_fault("a sluts=4").find("1:3: expected slots=N, max_slots=N or gpus=N"), std::string::npos);
    EXPECT_NE(placed_fault("a\n  n[1-2\n").find("2:4: this '[' is never closed"), std::string::npos);
    EXPECT_NE(placed_fault("a b").find("1:3: expected slots=N"), std::string::npos);
    EXPECT_NE(placed_fault("@a").find("1:1: expected a user's name"), std::string::npos);
    EXPECT_NE(placed_fault("-oProxyCommand=x@a").find("1:1: expected a user's name"), std::string::npos);
    EXPECT_NE(placed_fault("u@-a").find("1:3: a host name does not begin with '-'"), std::string::npos);
    EXPECT_NE(placed_fault("u@").find("1:3: expected a host's name"), std::string::npos);
    EXPECT_NE(placed_fault("# nothing\n\n").find("it names no host"), std::string::npos);
    EXPECT_NE(placed_fault("").find("it names no host"), std::string::npos);
}

TEST(host_files, take_addresses_in_brackets) {
    EXPECT_EQ(parse_hostfile("a\n[fd00::1] slots=2\n[fd00::2]:3\n", "hosts"),
              (entries{{"a", {}, {}}, {"fd00::1", 2, {}}, {"fd00::2", 3, {}}}));
    EXPECT_EQ(parse_hosts("[fd00::5:1]:1,u@[::1]:2,[10.0.0.1]:4,[fd00::5:1]", "-H"),
              (entries{{"fd00::5:1", 2, {}}, {"u@::1", 2, {}}, {"10.0.0.1", 4, {}}}));
    // two spellings of one address are one host, and nothing lies behind a NUL
    EXPECT_EQ(parse_hosts("[fd00::1]:1,[FD00:0:0::1]:1", "-H"), (entries{{"fd00::1", 2, {}}}));
    EXPECT_THROW(parse_hosts(std::string("[10.0.0.1\0evil]:2", 18), "-H"), error);
    EXPECT_EQ(compress_hosts(std::vector<std::string>{"fd00::5:1", "fd00::5:2", "n1", "n2"}), "fd00::5:1,fd00::5:2,n[1-2]");
    auto const why = "an IPv6 address stands in brackets, as in [fd00::5:1]:2, without a zone";
    EXPECT_EQ(fault("a\nfe80::1 slots=2\n"), fmt::format("hosts:2:1: {}\n  fe80::1 slots=2\n  ^", why));
    EXPECT_NE(placed_fault("a,[::1]2", false).find("1:8: expected :SLOTS behind the address"), std::string::npos);
    EXPECT_NE(placed_fault("a,[::1]:x", false).find("1:9: the slots behind ':' must be a number"), std::string::npos);
    for (auto const* text : {"a,fe80::1:2", "a,[fe80::1%eth0]:2", "a,fe80::1%eth0", "a,[::1"})
        EXPECT_EQ(placed_fault(text, false).find(fmt::format("1:3: {}", why)), 0u) << text;
    EXPECT_EQ(placed_fault("u@::1", false).find(fmt::format("1:3: {}", why)), 0u);
    EXPECT_EQ(fault("n[1-2]:2,10.0.0.1:4", false), "");
}

TEST(lists_of_hosts, of_mpirun_and_horovodrun) {
    EXPECT_EQ(parse_hosts("a:4,b:4", "-H"), (entries{{"a", 4, {}}, {"b", 4, {}}}));
    EXPECT_EQ(parse_hosts("a, u@b ,a", "-H"), (entries{{"a", 2, {}}, {"u@b", {}, {}}}));
    EXPECT_EQ(parse_hosts("n[1,3]:4,m", "-H"), (entries{{"n1", 4, {}}, {"n3", 4, {}}, {"m", {}, {}}}));
}

TEST(lists_of_hosts, faults_are_shown_with_a_caret) {
    EXPECT_EQ(fault("a:4,n[3-1]:2", false), "-H: the range ends at 1 before its beginning 3\n  a:4,n[3-1]:2\n          ^");
    EXPECT_NE(placed_fault("a:", false).find("1:3: the slots behind ':' must be a number"), std::string::npos);
    EXPECT_NE(placed_fault("a:0", false).find("it names no host"), std::string::npos);
    EXPECT_NE(placed_fault("a:-1", false).find("1:3: "), std::string::npos);
    EXPECT_NE(placed_fault(" , ", false).find("it names no host"), std::string::npos);
    EXPECT_NE(placed_fault("a,n[1-99999999]", false).find("1:3: the list names more than 262144 hosts"), std::string::npos);
}

TEST(node_files, keep_the_order_of_first_appearance) {
    auto const nodes = parse_node_file("n1\nn1\n\nn2\r\nn1\n# end\n", "file");
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_EQ(nodes[0], (node{"n1", "n1", 3, {}, {}}));
    EXPECT_EQ(nodes[1], (node{"n2", "n2", 1, {}, {}}));
}

TEST(node_files, a_host_in_two_forms_is_one) {
    auto const nodes = parse_node_file("n1\nn1.lab.example\nn2.a\nn2.b\n", "file");
    ASSERT_EQ(nodes.size(), 3u);
    EXPECT_EQ(nodes[0], (node{"n1", "n1", 2, {}, {}}));
    EXPECT_EQ(nodes[1].name, "n2.a");
    EXPECT_EQ(nodes[2].name, "n2.b");
}

TEST(node_files, may_name_single_gpus) {
    auto const nodes = parse_node_file("theta07-gpu3\ntheta07-gpu4\nmy-gpu-node\nx-gpu\n", "file", true);
    ASSERT_EQ(nodes.size(), 3u);
    EXPECT_EQ(nodes[0].gpu_ids, "3,4");
    EXPECT_EQ(nodes[0].gpus, 2);
    EXPECT_EQ(nodes[0].slots, 2);
    EXPECT_EQ(nodes[0].name, "theta07");
    EXPECT_EQ(nodes[1].name, "my-gpu-node");
    EXPECT_EQ(nodes[2].name, "x-gpu");
    EXPECT_EQ(parse_node_file("a-gpu0\n", "file").front().name, "a-gpu0");
    EXPECT_THROW(parse_node_file("n1;reboot\n", "file"), parse_error);
    EXPECT_THROW(parse_node_file("\n\n", "file"), parse_error);
}

}  // namespace
}  // namespace muster
