#include "launch/scheduler/hosts/hostlist.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {
namespace {

std::string expand(std::string_view text) {
    return join(expand_hostlist(text, "LIST"), " ");
}

std::string hostlist_fault(std::string_view text) {
    try {
        expand_hostlist(text, "LIST");
    } catch (parse_error const& e) {
        return e.what();
    }
    return "";
}

/// Its place, and its message: "1:3: expected a number".
std::string placed_hostlist_fault(std::string_view text) {
    try {
        expand_hostlist(text, "LIST");
    } catch (parse_error const& e) {
        return fmt::format("{}:{}: {}", e.line(), e.column(), std::string(e.what()).substr(6));
    }
    return "";
}

// The answers of `scontrol show hostnames` (Slurm 22.05) to the same lists.
TEST(hostlist, expands_as_scontrol_does) {
    EXPECT_EQ(expand("rack[1-2]n[1-3]"), "rack1n1 rack1n2 rack1n3 rack2n1 rack2n2 rack2n3");
    EXPECT_EQ(expand("a[1-2]b[3-4]c[5-6]"), "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6");
    EXPECT_EQ(
        expand("a[1-2]b[3-4]c[5-6]d[7-8]"),
        "a1b3c5d7 a1b3c5d8 a2b3c5d7 a2b3c5d8 a1b4c5d7 a1b4c5d8 a2b4c5d7 a2b4c5d8 a1b3c6d7 a1b3c6d8 a2b3c6d7 a2b3c6d8 a1b4c6d7 "
        "a1b4c6d8 a2b4c6d7 a2b4c6d8");
    EXPECT_EQ(expand("n[08-11]"), "n08 n09 n10 n11");
    EXPECT_EQ(expand("n[8-010]"), "n8 n9 n10");
    EXPECT_EQ(expand("n[1-2,05-06]x[1-2]"), "n1x1 n1x2 n2x1 n2x2 n05x1 n05x2 n06x1 n06x2");
    EXPECT_EQ(expand("n[1-2]3[4-5]"), "n134 n135 n234 n235");
    EXPECT_EQ(expand("[1-3]"), "1 2 3");
    EXPECT_EQ(expand("a b  c"), "a b c");
    EXPECT_EQ(expand(",a,,b,"), "a b");
    EXPECT_EQ(expand("a\tb\nc"), "a b c");
    EXPECT_EQ(expand("n1,n1"), "n1 n1");
    EXPECT_EQ(expand("a[1,1]"), "a1 a1");
}

TEST(hostlist, text_may_follow_the_last_bracket) {
    EXPECT_EQ(expand("n[1-2]-ib,m[3]x"), "n1-ib n2-ib m3x");
    EXPECT_EQ(expand("a[1-2].lab.example"), "a1.lab.example a2.lab.example");
}

TEST(hostlist, an_empty_list_names_no_host) {
    EXPECT_EQ(expand(""), "");
    EXPECT_EQ(expand(" , "), "");
}

TEST(hostlist, faults_are_shown_with_a_caret) {
    EXPECT_EQ(hostlist_fault("n[3-1]"), "LIST: the range ends at 1 before its beginning 3\n  n[3-1]\n      ^");
    EXPECT_EQ(hostlist_fault("a,n[1-2"), "LIST: this '[' is never closed\n  a,n[1-2\n     ^");
    EXPECT_EQ(hostlist_fault("n["), "LIST: this '[' is never closed\n  n[\n   ^");
    EXPECT_NE(placed_hostlist_fault("n[]").find("1:3: expected a number"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("n[1,]").find("1:5: expected a number"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("n[1--2]").find("1:5: expected a number"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("n[a-b]").find("1:3: expected a number"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("n[1x3]").find("1:4: expected ','"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("n[1-2-3]").find("1:6: expected ','"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("n1]").find("1:3: ']' without a '['"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("a,-n1").find("1:3: a host name does not begin with '-'"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("n1;rm").find("1:3: this character cannot be part of a host name"), std::string::npos);
    EXPECT_NE(placed_hostlist_fault("n[12345678901234567890]").find("1:3: a number of more than 18 digits"), std::string::npos);
}

TEST(hostlist, too_many_hosts_are_refused_before_they_cost_memory) {
    for (auto const* list : {"n[0-4294967295]", "n[0-999999999999999999]", "n[1-262145]", "a[1-70000]b[1-70000]",
                             "a[1-1000]b[1-1000]c[1-1000]d[1-1000]e[1-1000]f[1-1000]g[1-1000]", "n[1-200000],m[1-200000]"})
        EXPECT_NE(placed_hostlist_fault(list).find("more than 262144 hosts"), std::string::npos) << list;
    EXPECT_EQ(expand_hostlist("n[1-262144]", "LIST").size(), max_hosts);
    EXPECT_NE(placed_hostlist_fault(std::string(300, 'n')).find("more than 255 characters"), std::string::npos);
}

TEST(hostlist, of_a_hundred_thousand_hosts) {
    auto const hosts = expand_hostlist("rack[001-100]n[0001-1000]", "LIST");
    ASSERT_EQ(hosts.size(), 100'000u);
    EXPECT_EQ(hosts.front(), "rack001n0001");
    EXPECT_EQ(hosts[1000], "rack002n0001");
    EXPECT_EQ(compress_hosts(hosts), "rack[001-100]n[0001-1000]");
}

TEST(hostlist, of_a_hundred_thousand_hosts_named_one_by_one) {
    std::string list;
    for (int i = 0; i < 100'000; ++i) list += "x" + std::to_string(7 * i) + "c0,";
    auto const hosts = expand_hostlist(list, "LIST");
    EXPECT_EQ(hosts.size(), 100'000u);
    EXPECT_EQ(expand_hostlist(compress_hosts(hosts), "LIST"), hosts);
}

TEST(hostlist_compressed, keeps_hosts_and_their_order) {
    auto const compress = [](std::string_view list) { return compress_hosts(expand_hostlist(list, "LIST")); };
    EXPECT_EQ(compress("n1,n2,n3"), "n[1-3]");
    EXPECT_EQ(compress("n1"), "n1");
    EXPECT_EQ(compress("n3,n1,n2"), "n[3,1-2]");
    EXPECT_EQ(compress("n8,n9,n10,n011,n12"), "n[8-10,011,12]");
    EXPECT_EQ(compress("n08,n09,n10"), "n[08-10]");
    EXPECT_EQ(compress("n1,n1"), "n[1,1]");
    EXPECT_EQ(compress("login,n1-ib,n2-ib"), "login,n1-ib,n2-ib");
    EXPECT_EQ(compress("rack1n1,rack1n2,rack2n1,rack2n2"), "rack[1-2]n[1-2]");
    EXPECT_EQ(compress("rack1n1,rack1n2,rack2n1"), "rack1n[1-2],rack2n1");
    EXPECT_EQ(compress("x3001c0s13b0n0,x3001c0s19b0n0"), "x3001c0s[13,19]b0n[0]");
    EXPECT_EQ(compress("a1b1,a1b2,c1b1,c1b2"), "a1b[1-2],c1b[1-2]");
    EXPECT_EQ(compress("a1b10,a2b10"), "a[1-2]b[10]");
    EXPECT_EQ(compress("a11b1,a21b1"), "a[11,21]b[1]");
    EXPECT_EQ(compress(""), "");
}

std::vector<int> counts(std::string_view text, std::size_t nodes) {
    return expand_counts(text, nodes, "COUNTS");
}

TEST(counts, one_a_node) {
    EXPECT_EQ(counts("4(x3),2", 4), (std::vector{4, 4, 4, 2}));
    EXPECT_EQ(counts("16", 1), (std::vector{16}));
    EXPECT_EQ(counts("1,2(x2)", 3), (std::vector{1, 2, 2}));
}

TEST(counts, more_than_there_are_nodes_do_no_harm) {
    EXPECT_EQ(counts("4(x30)", 1), (std::vector{4}));
    EXPECT_EQ(counts("4(x999999999999),2", 2), (std::vector{4, 4}));
}

TEST(counts, faults_are_shown_with_a_caret) {
    auto const fault_of = [](std::string_view text) -> std::string {
        try {
            counts(text, 3);
        } catch (parse_error const& e) {
            return e.what();
        }
        return "";
    };
    EXPECT_EQ(fault_of("4(x2)"), "COUNTS: 2 numbers for 3 nodes\n  4(x2)\n       ^");
    for (auto const* text : {"", "4(x)", "4(x2", "4(2)", "4,,4", "-4", "+4", "x", "4(x-1)", "99999999999", "4(x3)2"})
        EXPECT_NE(fault_of(text), "") << text;
}

}  // namespace
}  // namespace muster
