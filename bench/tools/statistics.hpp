// Medians of repeated measurements, their confidence intervals and ratios.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

namespace muster {

/// Returns the middle value, or the mean of the two middle ones. Throws errc::internal without values.
double median(std::span<double const> values);

/// A confidence interval of the median that assumes nothing about the distribution: from the k-th smallest to the k-th largest
/// value. It covers the true median with probability 1 - 2 * P(Binomial(n, 1/2) < k). (Hoefler & Belli, SC15, rule on
/// nonparametric intervals.)
struct interval {
    double low = 0, high = 0;
    double confidence = 0;  ///< 0 for a single value, whose spread is unknown
    bool operator==(interval const&) const = default;
};

/// A 95% interval of a median needs this many values: smallest to largest of n values cover it with 1 - 2^(1-n).
inline constexpr std::size_t runs_for_interval = 6;

/// Returns the narrowest such interval with at least `wanted` confidence, or, with too few values for that, smallest to largest
/// with their confidence: 0.75 for 3 values, 0.9375 for 5. Throws errc::internal without values.
interval median_interval(std::span<double const> values, double wanted = 0.95);

/// The figures of repeated measurements.
struct summary {
    double median = 0;
    interval spread;
    double smallest = 0, largest = 0;
    std::size_t count = 0;
};
summary summarise(std::span<double const> values);

/// Median over median, and the least and most by the ends of both spreads.
struct median_ratio {
    double value = 0, low = 0, high = 0;
    std::size_t count = 0;  ///< of the smaller sample
    /// The spread contains 1, so either may be larger.
    bool within_spread() const noexcept { return count > 1 && low <= 1 && high >= 1; }
};
/// Returns the ratio of positive values. Throws errc::internal without values.
median_ratio ratio_of(summary const& above, summary const& below);
/// Returns "1.23", or "within the spread", with this many `digits` after the point.
std::string format_ratio(median_ratio const& of, int digits = 2);

// The clock of measurements returns microseconds since a point in time.

inline double micros_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace muster
