#include "launch/run/remote/remote_ranks.hpp"

#include <gtest/gtest.h>

#include "base/version.hpp"

namespace muster {
namespace {

using state = rank_evidence::state;

/// Four ranks on two nodes.
std::vector<remote_rank> four_ranks() {
    std::vector<remote_rank> ranks(4);
    for (int r = 0; r < 4; ++r) {
        auto& rank = ranks[static_cast<std::size_t>(r)];
        rank.node = r / 2;
        rank.job.who.rank = r;
        rank.job.who.node_rank = rank.node;
        rank.job.who.host = "node" + std::to_string(rank.node);
    }
    return ranks;
}

struct fixture {
    evidence known;
    remote_ranks ranks{four_ranks(), known};
};

wire::hello hello_of(int rank, std::string const& host) {
    wire::hello hello;
    hello.version = version();
    hello.rank = rank;
    hello.world_size = 4;
    hello.host = host;
    return hello;
}

TEST(remote_ranks, only_the_shims_of_the_plan_are_admitted) {
    fixture of_four;
    auto& [known, ranks] = of_four;
    EXPECT_EQ(ranks.objection_to(hello_of(0, "a"), "srun"), "");
    ranks.admit(hello_of(0, "a"));
    EXPECT_EQ(known[0].now, state::placing);
    EXPECT_NE(ranks.objection_to(hello_of(0, "a"), "srun").find("started rank 0 twice"), std::string::npos);
    EXPECT_NE(ranks.objection_to(hello_of(1, "b"), "srun").find("put rank 1 on b"), std::string::npos);
    EXPECT_NE(ranks.objection_to(hello_of(2, "a"), "srun").find("put rank 2 on a"), std::string::npos);
    EXPECT_NE(ranks.objection_to(hello_of(4, "a"), "srun").find("instead of 4 ranks"), std::string::npos);
    EXPECT_EQ(ranks.objection_to(hello_of(2, "b"), "srun"), "");
    auto other = hello_of(2, "b");
    other.version = "0.0.1";
    EXPECT_NE(ranks.objection_to(other, "srun").find("has muster 0.0.1"), std::string::npos);
}

TEST(remote_ranks, spares_are_none) {
    auto all = four_ranks();
    for (auto& one : all) one.job.hold_worker_port = true;
    all.back().spare = 0;
    evidence known;
    known.members = {0, 1, 2};
    remote_ranks ranks{std::move(all), known};
    EXPECT_EQ(known.size(), 3U);
    EXPECT_EQ(known.members, (std::vector<int>{0, 1, 2, -1}));
    EXPECT_EQ(known.name_of(known[3]), "spare 0 on node1");
    EXPECT_EQ(ranks.make_go().workers.size(), 3U);
    known[3].number = 2;  // it has come in, in place of rank 2
    known[3].plays = rank_evidence::part::rank;
    known[0].mpi = known[1].mpi = rank_evidence::world::inside;
    known[2].now = state::gone;
    for (int const rank : {0, 1, 3}) known[rank].now = state::running;
    known[2].plays = rank_evidence::part::left_out;
    auto const rows = known.rows([](int) { return nullptr; });
    ASSERT_EQ(rows.size(), 3U) << "who is not in the present generation is left out";
    EXPECT_EQ(rows[2].met, true);
    EXPECT_EQ(rows[2].rank, 2);
    EXPECT_EQ(rows[2].seat, 3);
    EXPECT_EQ(choose_examples(known.rows([](int) {
                  static process_sight const sight{.pid = 7};
                  return &sight;
              })),
              (std::vector<int>{0, 1, 3}))
        << "asked by the numbers at the start";
}

TEST(remote_ranks, a_host_of_two_names_is_told) {
    fixture of_four;
    auto& [known, ranks] = of_four;
    ranks.admit(hello_of(0, "a"));
    EXPECT_EQ(ranks.objection_to(hello_of(2, "a"), "remote"),
              "node0 and node1 are two names of one host, a; write node0:4 instead of both");
}

TEST(remote_ranks, show_what_the_last_look_has_shown) {
    fixture of_four;
    auto& [known, ranks] = of_four;
    for (int r = 0; r < 4; ++r) known[r].now = state::running, ranks[r].inspected = r == 3 ? 0 : 1, ranks[r].sight.pid = 7;
    EXPECT_EQ(ranks.rows(1)[1].met, std::nullopt);
    EXPECT_EQ(ranks.rows(1)[3].now, rank_row::life::silent);
    known[1].mpi = rank_evidence::world::inside;
    EXPECT_EQ(ranks.rows(1)[1].met, true) << "its server says so";
    EXPECT_EQ(ranks.rows(1)[0].met, false);
}

TEST(remote_ranks, are_listed_by_node) {
    fixture of_four;
    auto& [known, ranks] = of_four;
    ranks.admit(hello_of(0, "a"));
    EXPECT_EQ(known.list(state::absent), "rank 1 on a, ranks 2-3 on node1");
    EXPECT_EQ(known.count(state::absent), 3u);
    EXPECT_EQ(known.running(), 1u);
    known[3].spare = 0, known[3].plays = rank_evidence::part::coming;
    EXPECT_EQ(known.list(state::absent), "rank 1 on a, rank 2 on node1, spare 0 on node1");
}

TEST(remote_ranks, of_many_nodes_a_few_are_listed) {
    std::vector<remote_rank> many(64);
    for (int r = 0; r < 64; ++r) {
        auto& rank = many[static_cast<std::size_t>(r)];
        rank.node = rank.job.who.node_rank = rank.job.who.rank = r;
        rank.job.who.host = "h" + std::to_string(r + 1);
    }
    evidence known;
    remote_ranks const ranks(std::move(many), known);
    EXPECT_EQ(known.list(state::absent), "rank 0 on h1, rank 1 on h2, rank 2 on h3, rank 3 on h4 and 60 more nodes");
}

TEST(remote_ranks, share_what_is_large) {
    std::vector<remote_rank> two(2);
    auto const common = std::make_shared<common_job>(common_job{environment({{"A", "b"}}), {"program", "-x"}, {"C=d"}, {4, 5}});
    for (int r = 0; r < 2; ++r)
        two[static_cast<std::size_t>(r)].job.who.rank = r, two[static_cast<std::size_t>(r)].common = common;
    evidence known;
    remote_ranks const ranks(std::move(two), known);
    auto const job = ranks.job_of(*(ranks.begin() + 1));
    EXPECT_EQ(job.who.rank, 1);
    EXPECT_EQ(job.variables, common->variables);
    EXPECT_EQ(job.command, common->command);
    EXPECT_EQ(job.exports, common->exports);
    EXPECT_EQ(job.kept_parts, common->kept_parts);
}

TEST(remote_ranks, agents_come_once_a_host) {
    fixture of_four;
    auto& [known, ranks] = of_four;
    auto hello = hello_of(-1, "a");
    hello.agent = 1;
    EXPECT_EQ(ranks.objection_to_agent(hello), "");
    hello.agent = 2;
    EXPECT_NE(ranks.objection_to_agent(hello).find("number 2 of 2"), std::string::npos);
    hello.agent = 1;
    hello.version = "0.0.1";
    EXPECT_NE(ranks.objection_to_agent(hello).find("has muster 0.0.1"), std::string::npos);
    EXPECT_TRUE(ranks.is_on(2, 1));
    EXPECT_FALSE(ranks.is_on(2, 0));
    EXPECT_FALSE(ranks.is_on(4, 1));
    EXPECT_FALSE(ranks.is_on(-1, 1));
    event_loop loop;
    EXPECT_FALSE(ranks.awaits_agent_of(0)) << "where none has come, agents are not what is waited for";
    auto [there, here] = make_pipe();
    ranks.host(1).link = std::make_shared<frame_channel>(loop, std::move(there), frame_channel::callbacks{}, 1);
    EXPECT_TRUE(ranks.awaits_agent_of(0));
    EXPECT_FALSE(ranks.awaits_agent_of(2));
    hello = hello_of(-1, "a");
    hello.agent = 1;
    EXPECT_NE(ranks.objection_to_agent(hello).find("two agents"), std::string::npos);
}

TEST(remote_ranks, a_gpu_of_two_ranks_is_found_within_a_node_only) {
    fixture of_four;
    auto& [known, ranks] = of_four;
    for (auto& rank : ranks) rank.place.gpu_index = rank.job.who.rank % 2;
    EXPECT_FALSE(ranks.find_shared_gpu());
    ranks[3].place.gpu_index = 0;
    auto const shared = ranks.find_shared_gpu();
    ASSERT_TRUE(shared);
    EXPECT_EQ(shared->first, 3);
    EXPECT_EQ(shared->second, 2);
}

}  // namespace
}  // namespace muster
