// Tests of advice that is tried: which causes lead to which changes, and when it is said to have helped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/scaling/advice_changes.hpp"
#include "bench/study/tried_advice.hpp"
#include "bench/training/choose_network.hpp"
#include "sample_study.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

scaling_finding found(cause why, int ranks = 2) {
    scaling_finding out;
    out.why = why;
    out.ranks = ranks;
    out.advice = "do it";
    return out;
}

tried_advice measured(std::vector<double> before, std::vector<double> after) {
    tried_advice out;
    out.cause = "input";
    out.change = "--bind-to none";
    out.ranks = 2;
    out.metric = "wall_s";
    out.before = std::move(before);
    out.after = std::move(after);
    return out;
}

TEST(tried_advice, helped_only_where_the_whole_interval_says_so) {
    auto tried = measured({10, 12, 11, 10, 12, 11}, {5, 6, 5, 5, 6, 5});
    EXPECT_EQ(outcome_of(tried), advice_outcome::helped);
    EXPECT_EQ(
        outcome_text(tried),
        "it helped: 2.00 times as fast (2.00 to 2.20, 97% interval of 6 rounds taking turns) with --bind-to none at 2 ranks");
    EXPECT_EQ(outcome_of(measured({5, 6, 5, 6, 5, 6}, {10, 12, 10, 12, 10, 12})), advice_outcome::hurt);
    EXPECT_EQ(outcome_of(measured({10, 12, 11}, {5, 13, 5})), advice_outcome::within_spread);
    EXPECT_EQ(outcome_text(measured({10, 12, 11}, {5, 13, 5})),
              "within the spread (0.92 to 2.20 times as fast, range of 3 rounds taking turns) with --bind-to none at 2 ranks");
    tried.rate = true;
    EXPECT_EQ(outcome_of(tried), advice_outcome::hurt) << "less of a rate is worse";
}

TEST(tried_advice, of_fewer_rounds_than_an_interval_needs_is_not_known) {
    for (std::size_t rounds = 1; rounds < runs_for_interval; ++rounds) {
        auto const tried = measured(std::vector<double>(rounds, 10), std::vector<double>(rounds, 5));
        EXPECT_EQ(outcome_of(tried), advice_outcome::not_known) << rounds;
        EXPECT_EQ(to_json(tried).at("outcome"), "not known");
    }
    EXPECT_EQ(
        outcome_text(measured({10, 12, 11}, {5, 6, 5})),
        "not known: faster in all 3 rounds (2.00 to 2.20 times as fast, range of 3 rounds taking turns) with --bind-to none at "
        "2 ranks; give --repeats 6");
    EXPECT_THAT(outcome_text(measured({5, 5}, {10, 10})), HasSubstr("not known: slower in all 2 rounds"));
    EXPECT_THAT(outcome_text(measured({10}, {5})), HasSubstr("2.00 times as fast in one round"));
    EXPECT_THAT(outcome_text(measured({10}, {5})), HasSubstr("give --repeats 6"));
}

TEST(tried_advice, says_why_nothing_is_known) {
    auto tried = measured({}, {});
    tried.failed = 3;
    tried.failure = "exit code 3; see runs/what-if-0001-2-ranks.txt";
    EXPECT_EQ(outcome_of(tried), advice_outcome::failed);
    EXPECT_THAT(outcome_text(tried), HasSubstr("no round with --bind-to none at 2 ranks ended well: exit code 3"));
    tried.not_tried = "it is the program's own matter";
    EXPECT_EQ(tried_text({tried}), "what if (input): not tried: it is the program's own matter\n");
}

TEST(tried_advice, survives_its_json) {
    auto tried = measured({2, 3}, {1, 2});
    tried.launch = {"--bind-to", "none"};
    tried.program = {"./a", "{ranks}"};
    tried.settings = {"A=b"};
    tried.failed = 1;
    tried.failure = "hung";
    auto const document = to_json(tried);
    EXPECT_DOUBLE_EQ(document.at("times_as_fast").at("low").get<double>(), 1.5);
    EXPECT_EQ(read_tried_advice(checked_json(document, "test")), tried);
    auto s = sample_study();
    s.tried = {tried};
    EXPECT_EQ(read_study(to_json(s), "test"), s);
}

TEST(advice_changes, of_the_built_in_training_change_its_options) {
    auto const plan = sample_study().plan;
    auto const all =
        advice_changes(plan, {found(cause::oversubscribed, 4), found(cause::communication), found(cause::serial_part)});
    ASSERT_EQ(all.size(), 3u) << "a larger batch is tried once, though two causes ask for it";
    EXPECT_THAT(all[0].not_tried, HasSubstr("smaller numbers of ranks"));
    EXPECT_THAT(all[1].program, ElementsAre("muster-bench", "train", "--bucket-bytes", "1048576"));
    EXPECT_EQ(all[1].ranks, 2);
    EXPECT_THAT(all[2].program, ElementsAre("muster-bench", "train", "--batch", "256"));
    EXPECT_EQ(all[2].metric, "train_s");
}

TEST(advice_changes, of_a_strong_series_enlarge_the_batch_of_all_ranks) {
    auto plan = sample_study().plan;
    plan.series = work_series::strong;
    plan.batch = 128;
    plan.program.insert(plan.program.end(), {"--global-batch", "128"});
    auto const all = advice_changes(plan, {found(cause::serial_part)});
    ASSERT_EQ(all.size(), 1u);
    EXPECT_THAT(all[0].program, ElementsAre("muster-bench", "train", "--global-batch", "512"));
    EXPECT_THAT(all[0].change, HasSubstr("--global-batch 512"));
}

TEST(advice_changes, of_timed_compute_try_no_larger_batch) {
    auto plan = sample_study().plan;
    plan.program.insert(plan.program.end(), {"--net", "resnet50"});
    auto const all = advice_changes(plan, {found(cause::communication)});
    ASSERT_EQ(all.size(), 2u);
    EXPECT_THAT(all[0].program, ElementsAre("muster-bench", "train", "--net", "resnet50", "--bucket-bytes", "16777216"));
    EXPECT_THAT(all[1].not_tried, HasSubstr("resnet50's compute is timed"));
    EXPECT_TRUE(all[1].program.empty());
}

TEST(advice_changes, begin_at_the_buckets_that_the_network_has) {
    auto plan = sample_study().plan;
    plan.program.insert(plan.program.end(), {"--net", "cifar10"});
    EXPECT_EQ(advice_changes(plan, {found(cause::communication)}).at(0).program.back(), "16777216") << "16 times 1 MiB";
    EXPECT_EQ(default_bucket_bytes("mnist"), 65536u);
    EXPECT_EQ(default_bucket_bytes("gpt2-small"), 1048576u);
}

TEST(advice_changes, replace_what_the_study_was_given) {
    auto plan = sample_study().plan;
    plan.program.insert(plan.program.end(), {"--bucket-bytes", "1KiB", "--seed", "3"});
    plan.launch = {"--bind-to", "core", "--hosts", "a:2", "--cpu-map=0:0"};
    auto const all = advice_changes(plan, {found(cause::communication), found(cause::shared_core), found(cause::input)});
    EXPECT_THAT(all.at(0).program, ElementsAre("muster-bench", "train", "--seed", "3", "--bucket-bytes", "16384"));
    EXPECT_EQ(all.at(0).launch, plan.launch);
    EXPECT_THAT(all.at(2).launch, ElementsAre("--hosts", "a:2", "--bind-to", "core"));
    EXPECT_THAT(all.at(3).launch, ElementsAre("--hosts", "a:2", "--bind-to", "none"));
}

TEST(advice_changes, of_other_programs_come_from_outside) {
    study_plan plan;
    plan.program = {"./train.py"};
    auto const all = advice_changes(plan, {found(cause::communication), found(cause::imbalance), found(cause::serial_part)});
    ASSERT_EQ(all.size(), 5u);
    EXPECT_THAT(all[0].settings, ElementsAre("MUSTER_COMPRESSION=bf16"));
    EXPECT_EQ(all[0].program, plan.program);
    for (std::size_t i : {2, 3, 4}) EXPECT_NE(all[i].not_tried, "") << i;
}

}  // namespace
}  // namespace muster
