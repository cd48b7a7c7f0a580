#include "launch/watch/generation_loss.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace muster {
namespace {

using state = rank_evidence::state;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int sigkill = SIGKILL;
constexpr int exited(int code) {
    return code << 8;
}
constexpr std::string_view told = "muster.errors.CollectiveError: allreduce cannot finish: rank 1 on node1 was killed";

/// Four ranks that go on in place, two on each node.
evidence four(std::string engine = "") {
    evidence known;
    known.engine = std::move(engine);
    known.started = true;
    known.hosts = {"node1", "node2"};
    for (int r = 0; r < 4; ++r) {
        known.ranks.push_back({.rank = r, .node = r / 2, .now = state::running});
        known.members.push_back(r + 10);
    }
    return known;
}

void end(evidence& known, int rank, int status, std::string_view words = "") {
    known[rank].now = state::ended;
    known[rank].wait_status = status;
    known[rank].last_lines = words;
}

/// The loss after these ends, all of which the others outlive.
std::optional<generation_loss> outlive(evidence& known, std::vector<int> const& ends) {
    std::optional<generation_loss> loss;
    for (int const rank : ends) note_loss(known, loss, judge_member_end(known, rank, true));
    return loss;
}

TEST(generation_loss, is_the_first_that_others_outlive) {
    auto known = four();
    end(known, 1, sigkill), end(known, 2, exited(3));
    auto const loss = outlive(known, {1, 2});
    EXPECT_EQ(loss->what, "rank 1 on node1 (member 11) was killed by signal 9 (SIGKILL)");
    EXPECT_EQ(loss->member, 11);
    auto const ends = end_of(*loss, known);
    EXPECT_EQ(ends.kind, end_kind::rank);
    EXPECT_EQ(ends.code, 137);
    EXPECT_EQ(ends.rank, 1);
    EXPECT_EQ(ends.member, 11);
    EXPECT_EQ(ends.host, "node1");
}

TEST(generation_loss, is_explained_by_a_later_one_if_it_came_of_another) {
    auto known = four();
    end(known, 2, exited(1), told), end(known, 3, exited(1), told), end(known, 1, sigkill);
    EXPECT_THAT(outlive(known, {2, 3, 1})->judged.ranks_to_blame(), ElementsAre(1));
    EXPECT_THAT(outlive(known, {2, 1, 3})->judged.ranks_to_blame(), ElementsAre(1));
    EXPECT_THAT(outlive(known, {2, 3})->judged.ranks_to_blame(), ElementsAre(2)) << "none explains it: the first";
}

TEST(generation_loss, is_explained_by_a_lost_node) {
    auto known = four("remote");
    end(known, 0, exited(1), told);
    auto loss = outlive(known, {0});
    note_loss(known, loss, judge_silence(known, {2, 3}, duration(10)));
    EXPECT_EQ(loss->what, "lost ranks 2-3 on node2");
    EXPECT_EQ(end_of(*loss, known).kind, end_kind::node);
    EXPECT_EQ(end_of(*loss, known).code, 125);
}

TEST(generation_loss, of_a_process_that_has_not_become_a_member_gives_way) {
    auto known = four();
    known.members[1] = -1;
    end(known, 1, sigkill), end(known, 2, exited(3));
    EXPECT_THAT(outlive(known, {1, 2})->judged.ranks_to_blame(), ElementsAre(2));
}

TEST(generation_loss, is_of_the_present_generation) {
    auto known = four();
    end(known, 1, sigkill);
    number_anew(known, {10, 12, 13}, {0, 2, 3});
    EXPECT_EQ(outlive(known, {1}), std::nullopt);
}

TEST(generation_loss, is_to_blame_for_the_end_of_those_that_end_because_of_it) {
    auto known = four();
    end(known, 1, sigkill), end(known, 2, exited(1), told), end(known, 3, exited(1), told);
    auto const loss = outlive(known, {1, 2, 3});
    end(known, 0, exited(1), told);
    auto const judged = blame_for_end(known, loss, judge_member_end(known, 0, false));
    EXPECT_THAT(judged.ranks_to_blame(), ElementsAre(1));
    EXPECT_EQ(judged.exit_code, 137);
    EXPECT_TRUE(judged.of_rank);
    EXPECT_THAT(judged.text, StartsWith("rank 1 on node1 (member 11) was killed by signal 9 (SIGKILL), "));
    EXPECT_EQ(blame_for_end(known, std::nullopt, judge_member_end(known, 0, false)),
              blame_for_end(known, loss, judge_member_end(known, 0, true)));
}

TEST(generation_loss, of_a_node_is_to_blame_too) {
    auto known = four("remote");
    std::optional<generation_loss> loss;
    note_loss(known, loss, judge_silence(known, {2, 3}, duration(10)));
    end(known, 1, exited(1), told), end(known, 0, exited(1), told);
    auto const judged = blame_for_end(known, loss, blame_rank(known, 0, failure_cause::rank_end, "exited with code 1", 1));
    EXPECT_EQ(judged.cause, failure_cause::node);
    EXPECT_EQ(judged.exit_code, 125);
    EXPECT_THAT(judged.ranks_to_blame(), ElementsAre(2, 3));
    EXPECT_THAT(judged.text, StartsWith("lost ranks 2-3 on node2"));
}

TEST(generation_loss, is_not_to_blame_for_a_rank_that_fails_by_itself) {
    auto known = four();
    end(known, 1, sigkill);
    auto const loss = outlive(known, {1});
    end(known, 0, exited(3));
    EXPECT_THAT(blame_for_end(known, loss, judge_member_end(known, 0, false)).ranks_to_blame(), ElementsAre(0));
}

TEST(generation_loss, is_to_blame_where_too_few_are_left) {
    auto known = four();
    end(known, 1, sigkill);
    auto const loss = outlive(known, {1});
    auto const few = blame_run(failure_cause::rank_end, "the others cannot go on in place: 3 ranks left, 4 needed", 125);
    auto const judged = blame_for_end(known, loss, few);
    EXPECT_EQ(judged.exit_code, 137);
    EXPECT_THAT(judged.text, HasSubstr("was killed by signal 9 (SIGKILL), and the others cannot go on in place: 3 ranks left"));
    EXPECT_EQ(blame_for_end(known, std::nullopt, few), few) << "nobody is lost";
}

TEST(generation_loss, of_the_last_host_explains_those_that_have_ended_because_of_it) {
    auto known = four("remote");
    end(known, 0, exited(1), told), end(known, 1, exited(1), told);
    known[0].now = known[1].now = state::gone;
    known[2].now = known[3].now = state::lost;  // where nobody else is left that answers, silence alone is no sign
    auto const judged =
        blame_for_end(known, std::nullopt, blame_rank(known, 1, failure_cause::rank_end, "exited with code 1", 1));
    EXPECT_EQ(judged.cause, failure_cause::node);
    EXPECT_THAT(judged.ranks_to_blame(), ElementsAre(2, 3));
    EXPECT_EQ(judged.exit_code, 125);
}

TEST(generation_loss, whose_cause_is_still_held_takes_no_blame) {
    auto known = four();
    end(known, 1, sigkill);  // in a job it may be the scheduler's, which takes a while to say so
    end(known, 0, exited(1), told);
    auto const loss = outlive(known, {0});
    end(known, 2, exited(1), told);
    auto const judged = blame_for_end(known, loss, judge_member_end(known, 2, true));
    EXPECT_THAT(judged.ranks_to_blame(), ElementsAre(1));
    EXPECT_EQ(judged.exit_code, 137);
}

TEST(generation_loss, that_is_held_as_the_next_generation_begins_is_noted) {
    auto known = four();
    known.in_job = true;
    end(known, 1, sigkill);
    EXPECT_TRUE(hold_end(known, judge_member_end(known, 1, false)));
    std::optional<generation_loss> loss;
    EXPECT_TRUE(note_held(known, loss));
    ASSERT_TRUE(loss);
    EXPECT_EQ(end_of(*loss, known).cause, "rank 1 on node1 (member 11) was killed by signal 9 (SIGKILL)");
    EXPECT_EQ(end_of(*loss, known).code, 137);
    EXPECT_FALSE(note_held(known, loss)) << "it is noted";
    number_anew(known, {10, 12, 13}, {0, 2, 3});
    loss.reset();
    EXPECT_FALSE(note_held(known, loss)) << "it was that of the generation before";
}

TEST(generation_loss, that_is_held_explains_the_one_that_is_known) {
    auto known = four();
    end(known, 1, sigkill);
    end(known, 0, exited(1), told);
    auto loss = outlive(known, {0});
    EXPECT_TRUE(note_held(known, loss));
    EXPECT_THAT(loss->judged.ranks_to_blame(), ElementsAre(1));
    auto later = four();
    end(later, 0, exited(3)), end(later, 1, sigkill);
    loss = outlive(later, {1});
    EXPECT_FALSE(note_held(later, loss)) << "the first one stays";
}

TEST(generation_loss, waits_for_what_made_a_rank_end_only_where_the_others_cannot_go_on) {
    auto known = four();
    end(known, 2, exited(1), told);
    EXPECT_TRUE(judge_member_end(known, 2, true).ends());
    auto const held = judge_member_end(known, 2, false);
    EXPECT_EQ(held.next, verdict::step::hold);
    EXPECT_TRUE(hold_end(known, held));
    EXPECT_EQ(known.suspect, 2);
    EXPECT_FALSE(hold_end(known, {})) << "a decision is planned";
    EXPECT_EQ(known.suspect, 2);
    end(known, 1, exited(3));
    EXPECT_THAT(judge_member_end(known, 1, false).ranks_to_blame(), ElementsAre(1));
    std::optional<generation_loss> loss;
    note_loss(known, loss, judge_member_end(known, 1, true));
    EXPECT_EQ(known.suspect, -1);
}

}  // namespace
}  // namespace muster
