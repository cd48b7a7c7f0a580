#include "bench/study/study_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/error.hpp"
#include "bench/study/study_journal.hpp"
#include "bench/tools/temporary_folder.hpp"
#include "tests/unit/bench/sample_study.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

study_plan small_plan() {
    study_plan plan;
    plan.program = {"./a", "{ranks}"};
    plan.ranks = {1, 4};
    plan.repeats = 2;
    return plan;
}

study_run made(due_run const& due, run_status status = run_status::ok) {
    study_run run;
    run.ranks = due.ranks;
    run.repetition = due.repetition;
    run.warmup = due.warmup;
    run.status = status;
    run.wall_s = 1;
    return run;
}

TEST(all_runs, take_turns_behind_the_warm_up) {
    EXPECT_THAT(all_runs(small_plan()), ElementsAre(due_run{1, 0, true}, due_run{4, 0, true}, due_run{1, 0}, due_run{4, 0},
                                                    due_run{1, 1}, due_run{4, 1}));
}

TEST(all_runs, with_a_seed_are_in_one_order_of_many) {
    auto plan = small_plan();
    plan.ranks = {1, 2, 3, 4, 5, 6};
    plan.warmup = 0;
    plan.shuffle = 3;
    auto const first = all_runs(plan);
    EXPECT_EQ(all_runs(plan), first);
    EXPECT_FALSE(
        std::is_sorted(first.begin(), first.begin() + 6, [](auto const& a, auto const& b) { return a.ranks < b.ranks; }));
    std::vector<int> ranks;
    for (int i = 0; i < 6; ++i) ranks.push_back(first[static_cast<std::size_t>(i)].ranks);
    EXPECT_THAT(ranks, testing::UnorderedElementsAre(1, 2, 3, 4, 5, 6));
    plan.shuffle = 4;
    EXPECT_NE(all_runs(plan), first);
    plan.repeats = 3;
    auto more = all_runs(plan);
    more.resize(12);
    plan.repeats = 2;
    EXPECT_EQ(all_runs(plan), more) << "more repetitions change nothing of those before";
}

TEST(missing_runs, are_exactly_those_that_nobody_made) {
    auto const plan = small_plan();
    std::vector<study_run> runs{made({1, 0, true}), made({4, 0, true}), made({1, 0}), made({4, 0}, run_status::failed),
                                made({1, 1}, run_status::interrupted)};
    EXPECT_THAT(missing_runs(plan, runs), ElementsAre(due_run{1, 1}, due_run{4, 1}));
    EXPECT_THAT(missing_runs(plan, runs, true), ElementsAre(due_run{4, 0}, due_run{1, 1}, due_run{4, 1}));
    runs.push_back(made({1, 1}));
    auto const latest = latest_runs(runs);
    EXPECT_EQ(latest.size(), 5u) << "the interrupted one was made again";
    EXPECT_EQ(latest.back().status, run_status::ok);
}

TEST(difference, says_then_and_now) {
    auto const begun = small_plan();
    auto asked = begun;
    asked.repeats = 9;
    asked.judged = {"rate", true};
    EXPECT_THAT(difference(begun, asked), IsEmpty()) << "more repetitions and another judge go on";
    asked.ranks = {4, 1, 8};
    EXPECT_THAT(difference(begun, asked), IsEmpty()) << "as do more numbers of ranks";
    asked.ranks = {2, 4};
    asked.program = {"./b c"};
    asked.batch = 64;
    asked.timeout_s = 5;
    EXPECT_EQ(difference(begun, asked),
              "\n  program: ./a '{ranks}' then, './b c' now\n  ranks: 1,4 then, 2,4 now; to add to them, give --ranks 1,4,2\n  batch: none then, 64 now\n"
              "  time limit: none then, 5 s now");
}

TEST(study_journal, keeps_what_was_made_and_drops_a_line_that_is_cut_off) {
    temporary_folder const folder("journal", environment::capture());
    auto const whole = plain_study({1, 2}, {{1, 2}, {3, 4}});
    {
        study_journal journal(folder.path());
        EXPECT_FALSE(journal.read());
        journal.begin(whole);
        journal.add(whole.runs[0]);
        journal.add(whole.runs[1]);
        EXPECT_THROW(study_journal again(folder.path()), error) << "one at a time";
    }
    auto const path = folder.path() + "/runs.jsonl";
    std::ofstream(path, std::ios::app) << "{\"ranks\": 2, \"nod";
    study_journal journal(folder.path());
    auto const found = journal.read();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->runs, (std::vector<study_run>{whole.runs[0], whole.runs[1]}));
    EXPECT_EQ(found->plan, whole.plan);
    journal.add(whole.runs[2]);
    EXPECT_EQ(journal.read()->runs.size(), 3u);
    journal.begin(whole);
    EXPECT_EQ(journal.read()->runs.size(), 0u);
}

TEST(study_journal, names_the_line_that_is_damaged) {
    temporary_folder const folder("journal", environment::capture());
    {
        study_journal journal(folder.path());
        journal.begin(plain_study({1}, {{1}}));
    }
    std::ofstream(folder.path() + "/runs.jsonl", std::ios::app) << "{\"ranks\": 0}\n";
    study_journal journal(folder.path());
    try {
        journal.read();
        FAIL();
    } catch (error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("runs.jsonl, line 2: /ranks: is 0"));
    }
}

}  // namespace
}  // namespace muster
