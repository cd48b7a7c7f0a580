#include "bench/study/expectation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/unit/bench/sample_study.hpp"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(parse_expectation, reads_metric_ranks_bound_and_value) {
    EXPECT_EQ(parse_expectation("speedup[4]>=3.5"), (expectation{"speedup[4]>=3.5", "speedup", 4, bound::at_least, 3.5}));
    EXPECT_EQ(parse_expectation(" loss < 1e-2 "), (expectation{"loss < 1e-2", "loss", {}, bound::below, 0.01}));
    EXPECT_EQ(parse_expectation("efficiency[2]>80%"), (expectation{"efficiency[2]>80%", "efficiency", 2, bound::above, 0.8}));
    EXPECT_EQ(parse_expectation("a.b/c[1]<=-1").op, bound::at_most);
}

TEST(parse_expectation, shows_what_is_wrong) {
    for (auto const& [text, what] :
         {std::pair{"", "expected a metric"}, std::pair{"speedup[4>=3", "expected ']'"},
          std::pair{"speedup[x]>=3", "expected a number of ranks"}, std::pair{"speedup[0]>=3", "expected a number of ranks"},
          std::pair{"speedup=3", "expected >=, <=, > or <"}, std::pair{"speedup>=", "expected a number"},
          std::pair{"speedup>=3x", "expected a number"}, std::pair{"speedup>=nan", "expected a number"}}) {
        try {
            parse_expectation(text);
            ADD_FAILURE() << text;
        } catch (parse_error const& e) {
            EXPECT_EQ(e.code(), errc::usage);
            EXPECT_THAT(e.what(), HasSubstr(what));
            EXPECT_THAT(e.what(), HasSubstr("^"));
        }
    }
}

// 1 rank: 10 s, 2 ranks: 5 s (4.8 to 5.5).
study known_study() {
    return plain_study({1, 2}, {{10, 9.9, 10.1}, {5, 4.8, 5.5}});
}

judgement judged(char const* text, study const& s) {
    return judge(parse_expectation(text), scaling_rows(s), s.plan).at(0);
}

testing::AssertionResult is(judgement const& got, expectation_outcome came, std::string const& text) {
    if (got.came == came && got.text == text) return testing::AssertionSuccess();
    return testing::AssertionFailure() << got.text;
}

TEST(judge, keeps_breaks_or_leaves_open) {
    auto const s = known_study();
    EXPECT_TRUE(is(judged("speedup[2]>=1.7", s), expectation_outcome::kept, "kept: speedup[2]>=1.7: 2.00 (1.80 to 2.10)"));
    EXPECT_THAT(judged("speedup[2]>=1.9", s).text, StartsWith("not judged: speedup[2]>=1.9: 2.00 (1.80 to 2.10)"))
        << "the median alone decides nothing";
    EXPECT_EQ(judged("wall_s[2]<5.2", s).came, expectation_outcome::not_judged);
    EXPECT_EQ(judged("efficiency[2]>=101%", s).came, expectation_outcome::not_judged);
    EXPECT_THAT(judged("speedup[2]>2", s).text, HasSubstr("the bound lies within the spread; give more --repeats"));
    EXPECT_TRUE(is(judged("speedup[2]>=2.2", s), expectation_outcome::broken, "broken: speedup[2]>=2.2: 2.00 (1.80 to 2.10)"));
    EXPECT_EQ(judged("wall_s[1]<10", s).came, expectation_outcome::not_judged);
    EXPECT_EQ(judged("wall_s[1]<9", s).came, expectation_outcome::broken);
    EXPECT_EQ(judged("wall_s[2]<6", s).came, expectation_outcome::kept);
}

TEST(judge, without_ranks_means_all_of_them) {
    auto const s = known_study();
    EXPECT_EQ(judge(parse_expectation("wall_s<20"), scaling_rows(s), s.plan).size(), 2u);
    auto const ratios = judge(parse_expectation("speedup>1"), scaling_rows(s), s.plan);
    ASSERT_EQ(ratios.size(), 1u) << "the base has no speed-up of its own";
    EXPECT_THAT(ratios[0].text, StartsWith("kept: speedup>1 at 2 ranks"));
}

TEST(judge, what_was_not_measured_is_broken) {
    auto s = known_study();
    EXPECT_THAT(judged("wal_s[2]<6", s).text,
                HasSubstr("no run printed it; known are speedup, efficiency, wall_s; did you mean wall_s?"));
    EXPECT_THAT(judged("speedup[8]>1", s).text, HasSubstr("no runs of 8 ranks"));
    for (auto& run : s.runs) {
        if (run.ranks != 2) continue;
        run.status = run_status::failed;
        run.reason = "exit code 3";
    }
    EXPECT_TRUE(is(judged("wall_s[2]<6", s), expectation_outcome::broken,
                   "broken: wall_s[2]<6: no run ended well: exit code 3; see runs/0001.txt"));
}

TEST(judge, a_metric_that_nobody_tells_is_one_line) {
    auto const s = known_study();
    auto const out = judge(parse_expectation("wal_s<20"), scaling_rows(s), s.plan);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].text, "broken: wal_s<20: no run printed it; known are speedup, efficiency, wall_s; did you mean wall_s?");
}

TEST(judge, one_run_has_no_spread) {
    auto const s = plain_study({1, 2}, {{10}, {6}});
    EXPECT_EQ(judged("speedup[2]>=1.7", s).text, "broken: speedup[2]>=1.7: 1.67");
}

TEST(compare_with_baseline, names_what_is_worse) {
    auto const before = known_study();
    auto now = plain_study({1, 2, 4}, {{10.2, 10, 10.4}, {6, 5.8, 6.2}, {3, 3, 3}});
    auto out = compare_with_baseline(now, before, 0.05);
    ASSERT_EQ(out.size(), 2u) << "there is no baseline for 4 ranks";
    EXPECT_EQ(out[0].came, expectation_outcome::kept);
    EXPECT_TRUE(is(out[1], expectation_outcome::broken, "worse: wall_s at 2 ranks: 6.00 against 5.00 (+20.0%, 5.0% allowed)"));
    now.runs[3].wall_s = 5.4;
    out = compare_with_baseline(now, before, 0.05);
    EXPECT_EQ(out[1].came, expectation_outcome::not_judged);
    EXPECT_THAT(out[1].text, HasSubstr("the spreads overlap"));
    EXPECT_EQ(compare_with_baseline(now, before, 0.25)[1].came, expectation_outcome::kept);
    EXPECT_EQ(compare_with_baseline(before, now, 0.05)[1].came, expectation_outcome::kept) << "faster is not worse";
}

TEST(compare_with_baseline, of_a_rate_knows_that_more_is_better) {
    auto before = plain_study({1}, {{1}}), now = before;
    for (auto* s : {&before, &now}) s->plan.judged = {"rate", true};
    before.runs[0].metrics = {{"rate", "1/s", 0, {100}}};
    now.runs[0].metrics = {{"rate", "1/s", 0, {90}}};
    EXPECT_EQ(compare_with_baseline(now, before, 0.05)[0].came, expectation_outcome::broken);
    EXPECT_EQ(compare_with_baseline(before, now, 0.05)[0].came, expectation_outcome::kept);
    now.plan.judged = {"wall_s", false};
    EXPECT_THROW(compare_with_baseline(now, before, 0.05), error);
}

}  // namespace
}  // namespace muster
