// Medians of repeated measurements and their confidence intervals.
#pragma once

#include <span>
#include <vector>

namespace muster {

/// The middle value, or the mean of the two middle ones. Throws errc::internal on no values.
double median(std::span<double const> values);

/// A confidence interval of the median that assumes nothing about the distribution: from the k-th smallest to the k-th largest
/// value. It covers the true median with probability 1 - 2 * P(Binomial(n, 1/2) < k). (Hoefler & Belli, SC15, rule on
/// nonparametric intervals.)
struct interval {
    double low = 0, high = 0;
    double confidence = 0;  ///< 0 for a single value, whose spread is unknown
    bool operator==(interval const&) const = default;
};

/// The narrowest such interval with at least `wanted` confidence, or, where there are too few values for any, smallest to largest
/// with the confidence that this has: 0.75 for 3 values, 0.9375 for 5; 0.95 needs 6. Throws errc::internal on no values.
interval median_interval(std::span<double const> values, double wanted = 0.95);

/// What is shown of repeated measurements.
struct summary {
    double median = 0;
    interval spread;
    double smallest = 0, largest = 0;
    std::size_t count = 0;
};
summary summarise(std::span<double const> values);

}  // namespace muster
