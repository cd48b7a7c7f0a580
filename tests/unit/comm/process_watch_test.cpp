// Which processes live, are stopped, are gone.
#include "comm/backend/processes/process_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/backend/processes/rank_processes.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto tail = " 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 1 1\n";

TEST(parse_stat, reads_state_and_start_behind_any_name) {
    EXPECT_EQ(parse_stat(std::string("12 (a b) R) T") + tail), (process_stat{process_state::stopped, 98765}));
    EXPECT_EQ(parse_stat(std::string("12 (x) S") + tail), (process_stat{process_state::running, 98765}));
    EXPECT_EQ(parse_stat(std::string("12 (x) Z") + tail), (process_stat{process_state::gone, 98765}));
    EXPECT_EQ(parse_stat(std::string("12 (x) t") + tail).state, process_state::stopped);
}

TEST(parse_stat, text_of_another_kind_is_unknown) {
    for (auto const* text : {"", "12", "12 (x)", "12 (x) ", "12 (x) S", "12 (x) S 1 2 3", "no ) stat at all"})
        EXPECT_EQ(parse_stat(text), process_stat{}) << text;
}

TEST(state_of, follows_a_child_through_its_life) {
    process_name const parent = this_process();
    EXPECT_EQ(state_of(parent), process_state::running);
    pid_t const child = ::fork();
    if (child == 0) {
        ::raise(SIGSTOP);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
    process_name name = parent;
    name.pid = child;
    name.started = parent.started + 1'000'000;
    EXPECT_EQ(state_of(name), process_state::gone);  // another process had the number
    for (std::uint64_t ticks = 0; ticks < 1'000'000 && state_of(name) == process_state::gone; ++ticks)
        name.started = parent.started + ticks;
    EXPECT_EQ(state_of(name), process_state::stopped);
    EXPECT_EQ(describe(name, process_state::stopped), "process " + std::to_string(child) + " is stopped");
    ::kill(child, SIGKILL);
    siginfo_t info;
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(state_of(name), process_state::gone);  // a zombie
    ::waitpid(child, &status, 0);
    EXPECT_EQ(state_of(name), process_state::gone);
    name = parent;
    name.machine += 1;
    EXPECT_EQ(state_of(name), process_state::unknown);
}

identity world(int size, int nodes) {
    identity who;
    who.world_size = size;
    who.node_count = nodes;
    who.host = "n0";
    return who;
}

seen_process of(int rank, int pid, process_state state) {
    return {rank, {pid, 0, 1}, state};
}

TEST(explain_absence, names_stopped_ranks_first) {
    auto const result = explain_absence(
        world(3, 1), {of(0, 10, process_state::running), of(2, 12, process_state::stopped), of(2, 13, process_state::stopped)});
    EXPECT_THAT(result.text, HasSubstr("rank 2 on n0 (process 12 is stopped)"));
    EXPECT_THAT(result.culprits, ElementsAre(2));
}

TEST(explain_absence, names_ranks_without_a_process) {
    auto const result = explain_absence(world(4, 1), {of(0, 10, process_state::running), of(1, 11, process_state::gone)});
    EXPECT_EQ(result.text, "ranks 1, 2, 3 of 4 have no process on n0");
    EXPECT_THAT(result.culprits, ElementsAre(1, 2, 3));
}

TEST(explain_absence, accuses_nobody_without_evidence) {
    auto result = explain_absence(world(2, 1), {of(0, 10, process_state::running), of(1, 11, process_state::running)});
    EXPECT_THAT(result.text, HasSubstr("all ranks have a process"));
    EXPECT_THAT(result.culprits, IsEmpty());
    result = explain_absence(world(20, 2), {of(0, 10, process_state::running)});
    EXPECT_THAT(result.text, HasSubstr("(ranks 1, 2, 3, 4, 5, 6, 7, 8, 11 more) nothing is known"));
    EXPECT_THAT(result.culprits, IsEmpty());
}

TEST(explain_absence, names_ranks_of_several_nodes_that_were_seen_and_are_gone) {
    std::vector<seen_process> const first{of(0, 10, process_state::running), of(1, 11, process_state::running)};
    auto const now = with_the_gone(first, {of(0, 10, process_state::running)});
    auto const result = explain_absence(world(4, 2), now);
    EXPECT_EQ(result.text, "waiting for rank 1 on n0 (process 11 is gone)");
    EXPECT_THAT(result.culprits, ElementsAre(1));
    EXPECT_EQ(with_the_gone(first, first).size(), 2u);
    EXPECT_EQ(explain_absence(world(4, 1), now).text, "ranks 1, 2, 3 of 4 have no process on n0");
}

TEST(explain_absence, does_not_blame_ranks_that_gave_up_meanwhile) {
    std::vector<seen_process> const before{of(0, 10, process_state::running), of(2, 12, process_state::running)};
    std::vector<seen_process> const now{of(0, 10, process_state::running)};
    EXPECT_THAT(explain_absence(world(3, 1), before, now).culprits, ElementsAre(1));
    EXPECT_THAT(explain_absence(world(3, 1), before, before).culprits, ElementsAre(1));
    std::vector<seen_process> const all{of(0, 10, process_state::running), of(1, 11, process_state::running),
                                        of(2, 12, process_state::running)};
    EXPECT_THAT(explain_absence(world(3, 1), all, now).culprits, IsEmpty());
    EXPECT_THAT(explain_absence(world(3, 1), before, all).culprits, IsEmpty());
}

}  // namespace
}  // namespace muster
