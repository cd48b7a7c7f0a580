// Tests of the table of what every rank is doing.
#include "launch/watch/rank_table.hpp"

#include <gtest/gtest.h>
#include <signal.h>

namespace muster {
namespace {

rank_row row(int rank, char state, bool at_port) {
    rank_row r;
    r.rank = r.seat = rank;
    r.host = "node" + std::to_string(rank / 8 + 1);
    r.sight = {.pid = 100 + rank, .state = state, .where = state == 'S' ? "futex" : "", .cpu_s = 1.0 + rank, .at_port = at_port};
    return r;
}

TEST(rank_table, a_small_world_has_a_line_a_rank) {
    std::vector<rank_row> rows{row(0, 'S', true), row(1, 'R', false), row(2, 'S', false), row(3, 'S', false)};
    rows[0].sight.silent_s = 8;
    rows[0].sight.last_line = "step 5";
    rows[2].now = rank_row::life::ended;
    rows[2].end = "exited with code 0";
    rows[3].now = rank_row::life::silent;
    infer_meeting(rows);
    EXPECT_EQ(describe_ranks(rows),
              (std::vector<std::string>{
                  "rank 0 on node1, pid 100: asleep in futex, 1.0 s of CPU; has met the others; wrote last 8 s ago: step 5",
                  "rank 1 on node1, pid 101: running, 2.0 s of CPU; has not met the others; no output seen",
                  "rank 2 on node1: exited with code 0", "rank 3 on node1: its watcher does not answer"}));
    EXPECT_EQ(choose_examples(rows), (std::vector<int>{0, 1}));
}

TEST(rank_table, is_the_same_where_ranks_do_the_same) {
    std::vector<rank_row> rows{row(0, 'S', true), row(1, 'S', true)};
    auto const before = describe_states(rows);
    rows[1].sight.cpu_s += 3;
    rows[0].sight.silent_s = 60, rows[0].age_s = 2;
    EXPECT_EQ(describe_states(rows), before);
    rows[1].sight.where = "sleep";
    EXPECT_NE(describe_states(rows), before);
    rows[1] = row(1, 'S', true);
    rows[1].now = rank_row::life::ended, rows[1].end = "exited with code 0";
    EXPECT_NE(describe_states(rows), before);
}

TEST(rank_table, ranks_that_have_ended_are_shown_as_they_were_seen_last) {
    std::vector<rank_row> const before{row(0, 'S', false), row(1, 'S', false), row(2, 'R', false)};
    auto rows = before;
    rows[0].now = rows[1].now = rows[2].now = rank_row::life::ended;
    rows[1].sight = {};
    rows[2].sight.state = 'Z';
    auto const all = with_last_seen(rows, before, 7.2);
    EXPECT_EQ(describe_ranks(all),
              (std::vector<std::string>{"rank 0 on node1, pid 100: asleep in futex, 1.0 s of CPU; no output seen",
                                        "rank 1 on node1, pid 101: asleep in futex, 2.0 s of CPU; seen 7 s before",
                                        "rank 2 on node1, pid 102: running, 3.0 s of CPU; seen 7 s before"}))
        << "rank 0 answered before it ended; what the others wrote since is not known";
    rows[0].sight.state = 'R';
    EXPECT_EQ(with_last_seen(rows, before, 7.2).front().sight.state, 'S') << "the request to end has woken it";
    rows[0].sight.leaving = true;
    EXPECT_EQ(with_last_seen(rows, before, 7.2).front().sight.state, 'S') << "it is on its way out";
    EXPECT_TRUE(with_last_seen(rows, {}, 0).empty()) << "nothing is known of what they did";
    rows[0].sight.leaving = false;
    EXPECT_EQ(describe_ranks(with_last_seen(rows, {}, 0)).size(), 1u) << "what ended the others says nothing of what they did";
    rows[1].end = "exited with code 0";
    EXPECT_EQ(describe_ranks(with_last_seen(rows, {before[0], rows[1], before[2]}, 1))[1], "rank 1 on node1: exited with code 0")
        << "it had ended before";
    for (auto& one : rows) one.sight = {};
    EXPECT_TRUE(with_last_seen(rows, {}, 0).empty()) << "nothing is known of what they did";
}

TEST(rank_table, a_signal_reaches_the_ranks_that_handle_it) {
    std::vector<rank_row> rows{row(0, 'S', false), row(1, 'S', false), row(2, 'S', false), row(3, 'S', false)};
    EXPECT_EQ(find_reach(SIGUSR1, true, rows).text, "no rank handles SIGUSR1: nothing sent");
    EXPECT_EQ(find_reach(SIGUSR1, true, rows).reached, 0u);
    EXPECT_EQ(find_reach(SIGTERM, false, rows).text, "SIGTERM to 4 ranks");
    rows[0].sight.caught = rows[3].sight.caught = std::uint64_t{1} << (SIGUSR1 - 1);
    EXPECT_EQ(find_reach(SIGUSR1, true, rows).text, "SIGUSR1 to 2 of 4 ranks: ranks 1-2 have no handler for it");
    rows[1].now = rank_row::life::silent, rows[1].sight = {};
    EXPECT_EQ(find_reach(SIGUSR1, true, rows).text, "SIGUSR1 to 3 of 4 ranks: rank 2 has no handler for it");
    rows[2].now = rank_row::life::ended, rows[2].sight = {};
    EXPECT_EQ(find_reach(SIGUSR1, true, rows).text, "SIGUSR1 to 3 ranks");
}

TEST(rank_table, whether_ranks_met_is_said_only_where_one_has) {
    std::vector<rank_row> rows{row(0, 'S', false), row(1, 'S', false)};
    infer_meeting(rows);
    EXPECT_EQ(rows[0].met, std::nullopt);
    rows[1].met = true;  // MPI tells
    infer_meeting(rows);
    EXPECT_EQ(rows[0].met, false);
    EXPECT_EQ(rows[1].met, true);
}

TEST(rank_table, ranks_that_end_are_not_missing) {
    std::vector<rank_row> rows{row(0, 'S', true), row(1, 'R', false), row(2, 'Z', false), row(3, 'S', false), row(4, 'S', false)};
    rows[4].now = rank_row::life::ended;
    infer_meeting(rows);
    auto const first = find_unmet(rows, nullptr);
    ASSERT_EQ(first.size(), 2u);
    EXPECT_EQ(first[0].rank, 1);
    EXPECT_EQ(first[1].rank, 3);
    rows[1].now = rank_row::life::ended;  // it had met the others, and has left them
    EXPECT_EQ(find_unmet(rows, &first).size(), 1u);
    EXPECT_EQ(find_unmet(rows, &first).front().rank, 3);
    rows[3] = row(3, 'S', true);
    rows[0].met = false;
    EXPECT_TRUE(find_unmet(rows, &first).empty()) << "one that has just left its world may be about to end";
}

TEST(rank_table, a_large_world_is_told_by_groups_the_odd_ones_first) {
    std::vector<rank_row> rows;
    for (int r = 0; r < 64; ++r) rows.push_back(row(r, r == 9 ? 'T' : 'S', true));
    infer_meeting(rows);
    auto const lines = describe_ranks(rows);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0], "rank 9 on node2, pid 109: stopped, 10.0 s of CPU; has met the others; no output seen");
    EXPECT_EQ(
        lines[1],
        "63 ranks (ranks 0-8,10-63) on node1, node2, node3, node4 and 4 more: asleep in futex, 1.0 to 64.0 s of CPU; has met "
        "the others; of rank 0 (pid 100): no output seen");
    EXPECT_EQ(choose_examples(rows), (std::vector<int>{9, 0}));
}

TEST(rank_table, a_traceback_is_told) {
    auto one = row(0, 'S', false);
    one.sight.traceback = true;
    one.sight.silent_s = 1;
    one.sight.last_line = "ValueError: x";
    EXPECT_EQ(
        describe_ranks({one}).front(),
        "rank 0 on node1, pid 100: asleep in futex, has printed a traceback, 1.0 s of CPU; wrote last 1 s ago: ValueError: x");
}

}  // namespace
}  // namespace muster
