#include "bench/tools/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"

namespace muster {

namespace {
std::vector<double> sorted(std::span<double const> values) {
    expect(!values.empty(), "a statistic needs at least one value");
    std::vector<double> out(values.begin(), values.end());
    std::sort(out.begin(), out.end());
    return out;
}
}  // namespace

double median(std::span<double const> values) {
    auto const v = sorted(values);
    auto const half = v.size() / 2;
    return v.size() % 2 == 1 ? v[half] : (v[half - 1] + v[half]) / 2;
}

interval median_interval(std::span<double const> values, double wanted) {
    auto const v = sorted(values);
    auto const n = v.size();
    if (n == 1) return {v[0], v[0], 0};
    double const each = std::exp2(-static_cast<double>(n));
    double tail = each;  // P(Binomial(n, 1/2) < k), starting with k = 1
    double ways = 1;
    std::size_t k = 1;
    for (; 2 * (k + 1) <= n; ++k) {
        ways *= static_cast<double>(n - k + 1) / static_cast<double>(k);
        double const next = tail + ways * each;
        if (1 - 2 * next < wanted) break;
        tail = next;
    }
    return {v[k - 1], v[n - k], 1 - 2 * tail};
}

summary summarise(std::span<double const> values) {
    auto const [low, high] = std::minmax_element(values.begin(), values.end());
    return {median(values), median_interval(values), *low, *high, values.size()};
}

median_ratio ratio_of(summary const& above, summary const& below) {
    expect(above.count > 0 && below.count > 0 && below.spread.low > 0, "a ratio is of measured, positive values");
    return {above.median / below.median, above.spread.low / below.spread.high, above.spread.high / below.spread.low,
            std::min(above.count, below.count)};
}

std::string format_ratio(median_ratio const& of, int digits) {
    return of.within_spread() ? "within the spread" : fmt::format("{:.{}f}", of.value, digits);
}

}  // namespace muster
