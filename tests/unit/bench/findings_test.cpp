// Tests of the findings of a study: studies with known causes give these, and studies without any give none.
#include "bench/study/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sample_study.hpp"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// A fixed amount of work on 1, 2, 4 and 8 ranks with cores enough, six runs each, of `seconds(ranks)`.
template <typename Seconds>
study study_of(work_series series, Seconds&& seconds) {
    study s;
    s.name = "train.py";
    s.machine.cores = 8;
    s.plan.series = series;
    s.plan.ranks = {1, 2, 4, 8};
    s.plan.judged = {"wall_s", false};
    for (int repetition = 0; repetition < 6; ++repetition)
        for (int const ranks : s.plan.ranks) {
            study_run run;
            run.ranks = ranks;
            run.repetition = repetition;
            run.wall_s = seconds(ranks);
            run.load = {0.25, 8, 0.0, 0.0, {}};
            s.runs.push_back(run);
        }
    for (int const ranks : s.plan.ranks) {
        study_point point{ranks, 1, {"node1"}, false, "", {}};
        for (int r = 0; r < ranks; ++r) point.places.push_back({r, "node1", std::to_string(r), ""});
        s.points.push_back(point);
    }
    return s;
}

/// Every run of so many ranks tells a metric on each rank.
void tell(study& s, int ranks, std::string const& name, std::vector<double> const& by_rank) {
    for (auto& run : s.runs)
        if (run.ranks == ranks)
            for (std::size_t r = 0; r < by_rank.size(); ++r)
                run.metrics.push_back({name, "s", static_cast<int>(r), {by_rank[r]}});
}

scaling_finding const* find(std::vector<scaling_finding> const& all, cause why) {
    auto const found = std::ranges::find(all, why, &scaling_finding::why);
    return found == all.end() ? nullptr : &*found;
}

TEST(findings, serial_parts_come_out_of_their_own_laws) {
    std::vector<std::pair<double, double>> amdahl, gustafson;
    for (double const n : {1.0, 2.0, 4.0, 8.0, 16.0}) {
        amdahl.emplace_back(n, 1 / (0.2 + 0.8 / n));
        gustafson.emplace_back(n, n - 0.2 * (n - 1));
    }
    EXPECT_NEAR(amdahl_part(amdahl), 0.2, 1e-12);
    EXPECT_NEAR(gustafson_part(gustafson), 0.2, 1e-12);
    EXPECT_EQ(amdahl_part({{1, 1}}), 0);
}

TEST(findings, a_study_that_scales_has_none) {
    EXPECT_THAT(find_causes(study_of(work_series::strong, [](int n) { return 80.0 / n; })), IsEmpty());
    EXPECT_THAT(find_causes(study_of(work_series::weak, [](int) { return 10.0; })), IsEmpty());
    EXPECT_THAT(find_causes({}), IsEmpty());
}

TEST(findings, a_part_that_does_not_shrink_is_told_with_its_limit) {
    auto const all = find_causes(study_of(work_series::strong, [](int n) { return 20 + 80.0 / n; }));
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].why, cause::serial_part);
    EXPECT_NEAR(all[0].figure, 0.2, 1e-9);
    EXPECT_THAT(all[0].text, HasSubstr("20% (20% to 20%) of the time does not shrink"));
    EXPECT_THAT(all[0].text, HasSubstr("more than 5.0 (5.0 to 5.0) times as fast"));
    auto const weak = find_causes(study_of(work_series::weak, [](int n) { return 8.0 * n / (n - 0.2 * (n - 1)); }));
    ASSERT_EQ(weak.size(), 1u);
    EXPECT_NEAR(weak[0].figure, 0.2, 1e-9);
    EXPECT_THAT(weak[0].text, HasSubstr("Gustafson"));
    auto const slower = find_causes(study_of(work_series::weak, [](int n) { return 10.0 * n * n; }));
    ASSERT_EQ(slower.size(), 1u);
    EXPECT_THAT(slower[0].text, HasSubstr("more ranks are no faster")) << "more than 100% is no part";
}

TEST(findings, ranks_that_gain_nothing_have_no_limit) {
    auto const all = find_causes(study_of(work_series::strong, [](int n) { return 80.0 + n; }));
    ASSERT_EQ(all.size(), 1u);
    EXPECT_THAT(all[0].text, HasSubstr("up to 8 ranks, more ranks are no faster than 1 rank"));
    EXPECT_EQ(all[0].advice, "give each rank more work a step");
}

// A part of the time is no more than all of it, and of a speed-up that the spread hides no law tells anything.
TEST(findings, a_serial_part_that_the_spread_hides_is_none) {
    auto hidden = plain_study({1, 2}, {{0.2, 0.2, 0.2}, {0.15, 0.13, 1.5}});
    hidden.plan.series = work_series::strong;
    EXPECT_THAT(find_causes(hidden), IsEmpty());
    auto beyond = plain_study({1, 2, 4}, {{0.8, 0.8, 0.8}, {0.4, 0.4, 2}, {0.6, 0.6, 0.6}});
    beyond.plan.series = work_series::strong;
    EXPECT_THAT(find_causes(beyond), IsEmpty()) << "4 ranks are faster beyond the spread, the fit of one repetition is over 100%";
    auto known = plain_study({1, 2}, {{4, 4, 4}, {2.4, 2.5, 2.6}});
    known.plan.series = work_series::strong;
    EXPECT_THAT(findings_text(find_causes(known)), HasSubstr("25% (20% to 30%) of the time does not shrink with more ranks "
                                                             "(Amdahl), up to 2 ranks: no number of ranks would be more than "
                                                             "4.0 (3.3 to 5.0) times as fast"));
}

TEST(findings, of_work_that_is_not_known_no_law_is_told) {
    EXPECT_THAT(find_causes(study_of(work_series::as_given, [](int n) { return 20 + 80.0 / n; })), IsEmpty());
}

TEST(findings, a_slow_rank_is_named) {
    auto s = study_of(work_series::strong, [](int n) { return 80.0 / n; });
    tell(s, 8, "compute_s", {1, 1, 1, 1, 1, 1.5, 1, 1});
    auto const all = find_causes(s);
    auto const* slow = find(all, cause::imbalance);
    ASSERT_NE(slow, nullptr);
    EXPECT_NEAR(slow->figure, 1.5 / 1.0625 - 1, 1e-9);
    EXPECT_THAT(slow->text, HasSubstr("at 8 ranks, rank 5 (node1) computes 41% longer than the mean"));
}

TEST(findings, a_rank_that_the_remarks_of_most_runs_name_counts_more_than_what_it_prints) {
    auto s = study_of(work_series::strong, [](int n) { return 80.0 / n; });
    tell(s, 8, "compute_s", {1, 1, 1, 1, 1, 1.5, 1, 1});
    int left = 3;  // of six runs: not most of them
    for (auto& run : s.runs)
        if (run.ranks == 8 && left-- > 0) run.remarked = remarked_rank{2, "node1", 0.4, "its GPU ran at 1005 of 1980 MHz"};
    EXPECT_THAT(findings_text(find_causes(s)), HasSubstr("rank 5 (node1) computes 41% longer"));
    for (auto& run : s.runs)
        if (run.ranks == 8 && !run.remarked) run.remarked = remarked_rank{2, "node1", 0.2, ""};
    auto const all = find_causes(s);
    auto const* slow = find(all, cause::imbalance);
    ASSERT_NE(slow, nullptr);
    EXPECT_NEAR(slow->figure, 0.3, 1e-9);
    EXPECT_THAT(findings_text(all),
                HasSubstr("at 8 ranks, rank 2 (node1) kept the others waiting 30% of the time: its GPU ran at 1005 of "
                          "1980 MHz; mend that, or leave node1 out"));
    // NCCL's waits are not known: then the reason goes with the rank that computes longer, and with no other.
    for (int const rank : {5, 2}) {
        for (auto& run : s.runs)
            if (run.ranks == 8) run.remarked = remarked_rank{rank, "node1", 0, "its GPU ran at 1005 of 1980 MHz"};
        auto const text = findings_text(find_causes(s));
        EXPECT_THAT(text, HasSubstr("rank 5 (node1) computes 41% longer"));
        EXPECT_EQ(text.find("mean 1.06): its GPU ran at 1005 of 1980 MHz;") != text.npos, rank == 5) << text;
    }
}

TEST(findings, a_remark_is_read_from_the_output_of_a_run) {
    EXPECT_EQ(read_remark("[a:0] loss 1\nmuster: note: 4 ranks on 2 cores\nmuster: note: rank 3 on gpu18 kept the others waiting "
                          "37 % of the time: its "
                          "GPU ran at 1005 of 1980 MHz: heat\nmuster: note: rank 1 on b: ended\n"),
              (remarked_rank{3, "gpu18", 0.37, "its GPU ran at 1005 of 1980 MHz: heat"}));
    EXPECT_EQ(read_remark("muster: note: rank 0 on a kept the others waiting 12 % of the time"),
              (remarked_rank{0, "a", 0.12, ""}));
    EXPECT_EQ(read_remark("muster: note: rank 7 on b: its GPU's memory has had 2 uncorrected errors\n"),
              (remarked_rank{7, "b", 0, "its GPU's memory has had 2 uncorrected errors"}));
    for (auto const* const none :
         {"", "[a:0] muster: note: rank 0 on a kept the others waiting 12 % of the time\n", "muster: note: rank x on a: b\n"})
        EXPECT_EQ(read_remark(none), std::nullopt) << none;
}

TEST(findings, ranks_that_take_turns_in_being_slow_are_no_finding) {
    auto s = study_of(work_series::strong, [](int n) { return 80.0 / n; });
    int turn = 0;
    for (auto& run : s.runs)
        if (run.ranks == 8) {
            for (int r = 0; r < 8; ++r) run.metrics.push_back({"compute_s", "s", r, {r == turn % 8 ? 1.5 : 1.0}});
            ++turn;
        }
    EXPECT_EQ(find(find_causes(s), cause::imbalance), nullptr);
}

TEST(findings, waiting_is_a_part_of_the_time_and_the_worst_comes_first) {
    auto s = study_of(work_series::strong, [](int n) { return 80.0 / n; });
    tell(s, 8, "allreduce_wait_s", {1});
    tell(s, 8, "loader_wait_s", {3});
    tell(s, 4, "allreduce_wait_s", {15});
    auto const all = find_causes(s);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].why, cause::input);
    EXPECT_NEAR(all[0].figure, 0.3, 1e-9);
    EXPECT_EQ(all[1].why, cause::communication);
    EXPECT_NEAR(all[1].figure, 0.1, 1e-9);
    EXPECT_THAT(findings_text(all), HasSubstr("what limits it (input): at 8 ranks, 30% of wall_s is waiting for the next batch"));
}

// A rate is of the steps: start-up has no part in it, however long Python takes to load.
TEST(findings, waiting_is_a_part_of_the_steps_where_a_rate_is_judged) {
    auto s = study_of(work_series::as_given, [](int) { return 12.0; });
    s.plan.judged = {"images_per_s", true};
    for (auto& run : s.runs) run.metrics = {{"images_per_s", "images/s", 0, {100.0 * run.ranks}}};
    tell(s, 8, "allreduce_wait_s", {0.05});
    EXPECT_THAT(find_causes(s), IsEmpty()) << "nothing else is known of the steps: 0.05 of 12 s";
    tell(s, 8, "loader_wait_s", {0.02});
    tell(s, 8, "compute_s", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
    auto const all = find_causes(s);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].why, cause::communication);
    EXPECT_NEAR(all[0].figure, 0.05 / 0.57, 1e-9);
    EXPECT_THAT(all[0].text, HasSubstr("at 8 ranks, 8.8% of the steps (0.570 s) is waiting for gradients"));
    for (auto& run : s.runs)
        std::erase_if(run.metrics, [](auto const& m) { return m.name == "compute_s" || m.name == "loader_wait_s"; });
    tell(s, 8, "train_s", {0.5});
    EXPECT_THAT(findings_text(find_causes(s)), HasSubstr("10% of train_s is waiting for gradients"));
}

TEST(findings, a_shared_core_is_named) {
    auto s = study_of(work_series::strong, [](int n) { return 80.0 / n; });
    s.points[1].places[1].cpus = "0-1";
    auto const all = find_causes(s);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].why, cause::shared_core);
    EXPECT_THAT(all[0].text, HasSubstr("of 2 ranks, ranks 0 and 1 on node1 share core 0"));
    for (auto& place : s.points[1].places) place.cpus = "not bound";
    EXPECT_THAT(find_causes(s), IsEmpty());
}

TEST(findings, ranks_without_cores_are_told_and_not_fitted) {
    auto s = study_of(work_series::strong, [](int n) { return n > 2 ? 45.0 : 80.0 / n; });
    s.machine.cores = 2;
    for (auto& run : s.runs) run.oversubscribed = run.ranks > 2;
    for (auto& point : s.points) point.oversubscribed = point.ranks > 2;
    auto const all = find_causes(s);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].why, cause::oversubscribed);
    EXPECT_THAT(all[0].text, HasSubstr("from 4 ranks on ranks share cores (4 on 2 of them)"));
}

TEST(findings, of_a_network_that_is_brought) {
    auto const all = find_causes(sample_study());
    ASSERT_NE(find(all, cause::oversubscribed), nullptr);
    auto const* serial = find(all, cause::serial_part);
    ASSERT_NE(serial, nullptr);
    EXPECT_NEAR(serial->figure, 0.125, 0.02) << "8 s on one rank, 4.5 on two";
    EXPECT_EQ(find(all, cause::communication), nullptr) << "0.125 of 4.5 s";
}

}  // namespace
}  // namespace muster
