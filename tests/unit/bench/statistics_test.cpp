#include "bench/tools/statistics.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.hpp"

namespace muster {
namespace {

using values = std::vector<double>;

TEST(median, of_odd_and_even_counts) {
    EXPECT_EQ(median(values{3}), 3);
    EXPECT_EQ(median(values{9, 1, 5}), 5);
    EXPECT_EQ(median(values{4, 1, 2, 8}), 3);
    EXPECT_THROW(median(values{}), error);
}

// The coverages are those of the binomial distribution: 1 - 2 * P(B(n, 1/2) < k).
TEST(median_interval, of_few_values_is_the_whole_range_with_its_true_confidence) {
    EXPECT_EQ(median_interval(values{7}), (interval{7, 7, 0}));
    EXPECT_EQ(median_interval(values{2, 1}), (interval{1, 2, 0.5}));
    EXPECT_EQ(median_interval(values{3, 1, 2}), (interval{1, 3, 0.75}));
    EXPECT_EQ(median_interval(values{5, 4, 3, 2, 1}), (interval{1, 5, 0.9375}));
}

TEST(median_interval, of_many_values_is_the_narrowest_that_is_sure_enough) {
    values ten{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    auto const ci = median_interval(ten);
    EXPECT_EQ(ci.low, 2);  // second smallest to second largest: 1 - 2 * 11/1024
    EXPECT_EQ(ci.high, 9);
    EXPECT_DOUBLE_EQ(ci.confidence, 1 - 22.0 / 1024);
    auto const narrower = median_interval(ten, 0.5);
    EXPECT_EQ(narrower.low, 4);  // 1 - 2 * 176/1024 = 0.656; the next would have 0.246
    EXPECT_EQ(narrower.high, 7);
    EXPECT_EQ(median_interval(values{6, 5, 4, 3, 2, 1}), (interval{1, 6, 1 - 2.0 / 64}));
}

TEST(summarise, keeps_what_the_values_were) {
    auto const s = summarise(values{4, 2, 9});
    EXPECT_EQ(s.median, 4);
    EXPECT_EQ(s.smallest, 2);
    EXPECT_EQ(s.largest, 9);
    EXPECT_EQ(s.count, 3u);
}

TEST(ratio_of, is_not_told_where_the_spreads_swallow_it) {
    auto const of = [](std::vector<double> const& measured) { return summarise(measured); };
    auto const twice = ratio_of(of({20, 22, 18}), of({10, 11, 9}));
    EXPECT_DOUBLE_EQ(twice.value, 2);
    EXPECT_DOUBLE_EQ(twice.low, 18.0 / 11);
    EXPECT_DOUBLE_EQ(twice.high, 22.0 / 9);
    EXPECT_EQ(format_ratio(twice), "2.00");
    EXPECT_EQ(format_ratio(ratio_of(of({10, 12, 9}), of({10, 11, 9.5}))), "within the spread");
    EXPECT_EQ(format_ratio(ratio_of(of({10}), of({8})), 1), "1.2") << "of single values no spread is known";
}

}  // namespace
}  // namespace muster
