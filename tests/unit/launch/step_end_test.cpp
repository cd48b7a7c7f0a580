#include "launch/scheduler/slurm/step_end.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster {
namespace {

TEST(step_end, a_step_that_was_cancelled_is_told_by_slurmstepd) {
    EXPECT_EQ(cancelled_step("slurmstepd: error: *** STEP 2.0 ON node1 CANCELLED AT 2026-11-28T03:00:00 ***"), "2.0");
    EXPECT_EQ(
        cancelled_step(
            "[2026-11-28T03:00:00.100] error: *** STEP 65.0 ON node1 CANCELLED AT 2026-11-28T03:00:00 DUE to SIGNAL Killed ***"),
        "65.0");
    EXPECT_EQ(cancelled_step(
                  "slurmstepd-n1: error: *** STEP 65+1.3 ON n1 CANCELLED AT 2026-11-28T03:00:00 DUE to SIGNAL Terminated ***"),
              "65+1.3");
}

TEST(step_end, other_ends_are_no_cancellation) {
    for (auto const* line : {"slurmstepd: error: *** STEP 2.0 ON node1 CANCELLED AT 2026-11-28T03:00:00 DUE TO TIME LIMIT ***",
                             "slurmstepd: error: *** STEP 2.0 ON node1 CANCELLED AT 2026-11-28T03:00:00 DUE TO NODE FAILURE, SEE "
                             "SLURMCTLD LOG FOR DETAILS ***",
                             "slurmstepd: error: *** STEP 2.0 ON node1 CANCELLED AT 2026-11-28T03:00:00 DUE TO PREEMPTION ***",
                             "slurmstepd: error: *** JOB 2 ON node1 CANCELLED AT 2026-11-28T03:00:00 ***",
                             "*** STEP ON CANCELLED AT ***", "*** STEP x ON", ""})
        EXPECT_EQ(cancelled_step(line), "") << line;
}

TEST(step_end, what_srun_ends_itself_was_not_cancelled) {
    for (auto const* line : {"srun: error: Task launch for StepId=13.0 failed on node node3: Communication connection failure\n",
                             "srun: forcing job termination\n"}) {
        step_words words;
        words.take(line);
        words.take("slurmstepd-node1: error: *** STEP 13.0 ON node1 CANCELLED AT 2026-11-28T03:53:51 ***\n");
        EXPECT_EQ(words.cancelled(), "") << line;
    }
}

TEST(step_end, what_pmix_kills_for_a_rank_was_not_cancelled) {
    std::vector<std::string> lines{
        "slurmstepd-node2: error:  mpi/pmix_v4: _errhandler: node2 [1]: pmixp_client_v2.c:211: Error handler invoked: status = "
        "-61, source = [slurm.pmix.2.0:3]\n",
        "slurmstepd-node1: error: *** STEP 2.0 ON node1 CANCELLED AT 2026-11-28T03:53:51 ***\n",
        "srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n"};
    std::ranges::sort(lines);
    do {
        step_words words;
        for (auto const& line : lines) words.take(line);
        EXPECT_EQ(words.cancelled(), "") << lines[0];
    } while (std::ranges::next_permutation(lines).found);
}

TEST(step_end, what_srun_kills_behind_a_task_was_not_cancelled) {
    constexpr auto cancelled = "slurmstepd: error: *** STEP 2.0 ON node1 CANCELLED AT 2026-11-28T03:00:00 ***\n";
    constexpr auto killed = "srun: error: node1: task 0: Killed\n";
    step_words first, second;
    first.take(cancelled);
    first.take(killed);
    EXPECT_EQ(first.cancelled(), "2.0");
    second.take(killed);
    second.take(cancelled);
    EXPECT_EQ(second.cancelled(), "");
    step_words told;  // the controller's word comes before what it does to the tasks
    told.take("srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n");
    told.take(killed);
    told.take(cancelled);
    EXPECT_EQ(told.cancelled(), "2.0");
    step_words pieces;
    for (char const c : std::string_view(cancelled)) pieces.take({&c, 1});
    EXPECT_EQ(pieces.cancelled(), "2.0");
}

}  // namespace
}  // namespace muster
