#include "bench/study/failed_runs.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(last_words, are_the_failed_ranks) {
    EXPECT_EQ(last_words(""), "");
    EXPECT_EQ(last_words("\n \n"), "");
    EXPECT_EQ(last_words("[vm:1] starting\n[vm:1] the dog ate it\n\n"), "the dog ate it");
    EXPECT_EQ(last_words("[not a tag] x\n"), "[not a tag] x");
    EXPECT_EQ(last_words("10%\r20%\r30%"), "30%");
    EXPECT_EQ(last_words("a\x1b[31mb"), "a\\x1b[31mb");
    std::string const report =
        "[vm:0] more\nmuster: error: rank 1 on vm exited with code 3, 5 ms after the start; ending the other 1\n";
    EXPECT_EQ(last_words(report), "rank 1 on vm exited with code 3, 5 ms after the start; ending the other 1");
    EXPECT_EQ(last_words(report +
                         "  the last it wrote on stderr:\n  | Traceback\n  | No module\n  |\nsrun: launch/slurm: Terminating\n"),
              "No module");
    EXPECT_EQ(last_words("the end\nslurmstepd: error: killed\n"), "the end");
    EXPECT_EQ(last_words(std::string(159, 'a') + "éé"), std::string(159, 'a') + "…") << "no half of a code point";
}

TEST(failure_of, has_words_and_place_where_there_are_some) {
    study_run run;
    EXPECT_EQ(outcome_of(run), "");
    run.status = run_status::timed_out;
    run.reason = "took longer than 1 s";
    EXPECT_EQ(outcome_of(run), "took longer than 1 s");
    run.status = run_status::failed;
    run.reason = "exit code 3";
    EXPECT_EQ(outcome_of(run), "failed: exit code 3");
    EXPECT_EQ(failure_of(run), "exit code 3");
    run.last_words = "the dog ate it";
    run.output = "runs/0002-2-ranks.txt";
    EXPECT_EQ(failure_of(run), "exit code 3: the dog ate it; see runs/0002-2-ranks.txt");
}

}  // namespace
}  // namespace muster
