// Who is who in a process set, and who gets which share.
#include "comm/backend/process_set.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "comm/tensor/tensor.hpp"

namespace muster {
namespace {

TEST(identity_in_set, counts_ranks_and_nodes_anew) {
    std::vector<std::string> const hosts{"n0", "n0", "n1", "n1", "n2"};
    identity who;
    who.nspace = "job.1";
    who.rank = 3;
    who.world_size = 5;
    who.host = hosts[3];
    std::array const set{4, 2, 3, 0};
    identity const member = identity_in_set(who, set, 2, hosts);
    EXPECT_EQ(member.nspace, "job.1");
    EXPECT_EQ(member.rank, 2);
    EXPECT_EQ(member.world_size, 4);
    EXPECT_EQ(member.host, "n1");
    EXPECT_EQ(member.local_rank, 1);
    EXPECT_EQ(member.local_size, 2);
    EXPECT_EQ(member.node_rank, 1);  // n2, n1, n0
    EXPECT_EQ(member.node_count, 3);
    EXPECT_EQ(identity_in_set(who, set, 0, hosts).node_rank, 0);
}

TEST(identity_of_member, numbers_by_the_list_and_has_a_namespace_of_its_own) {
    identity who;
    who.nspace = "job.1";
    who.rank = who.local_rank = 3;
    who.world_size = who.local_size = 4;
    who.host = "n0";
    std::array const list{3, 1};
    identity const member = identity_of_member(who, list, 0, "pair");
    EXPECT_EQ(member.rank, 0);
    EXPECT_EQ(member.world_size, 2);
    EXPECT_EQ(member.local_rank, 0);
    EXPECT_EQ(member.local_size, 2);
    EXPECT_EQ(member.node_count, 1);
    EXPECT_EQ(member.host, "n0");
    EXPECT_EQ(member.nspace, identity_of_member(who, list, 1, "pair").nspace);
    EXPECT_NE(member.nspace, who.nspace);
    EXPECT_NE(member.nspace, identity_of_member(who, list, 0, "other").nspace);
    EXPECT_NE(member.nspace, identity_of_member(who, std::array{3, 2}, 0, "pair").nspace);
    who.node_count = 2;  // who shares a node is not known
    EXPECT_EQ(identity_of_member(who, list, 1, "pair").local_size, 1);
    EXPECT_EQ(identity_of_member(who, list, 1, "pair").node_count, 2);
}

TEST(fingerprint_of, differs_with_members_order_and_length) {
    EXPECT_EQ(fingerprint_of(std::array{0, 1}), fingerprint_of(std::array{0, 1}));
    EXPECT_NE(fingerprint_of(std::array{0, 1}), fingerprint_of(std::array{1, 0}));
    EXPECT_NE(fingerprint_of(std::array{0, 1}), fingerprint_of(std::array{0, 1, 2}));
    EXPECT_NE(fingerprint_of(std::array{0}), fingerprint_of(std::array{0, 0}));
}

TEST(share_of, covers_all_elements_once_and_gives_the_first_ranks_one_more) {
    for (std::size_t const count : {0u, 1u, 3u, 4u, 10u, 1001u})
        for (int const ranks : {1, 2, 3, 4, 7}) {
            std::size_t next = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                auto const share = share_of(count, ranks, rank);
                EXPECT_EQ(share.first, next);
                EXPECT_EQ(share.count, count / static_cast<std::size_t>(ranks) +
                                           (static_cast<std::size_t>(rank) < count % static_cast<std::size_t>(ranks) ? 1 : 0));
                next += share.count;
            }
            EXPECT_EQ(next, count);
        }
}

}  // namespace
}  // namespace muster
