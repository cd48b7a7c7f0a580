#include "io/loader/weighted_draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "io/loader/permutation.hpp"

namespace muster {

namespace {

__extension__ using wide = unsigned __int128;

std::uint64_t hash(std::uint64_t key, std::uint64_t position) {
    return permutation::mix(key + (position + 1) * 0x9e3779b97f4a7c15u);
}

/// In (0, 1].
double unit(std::uint64_t bits) {
    return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

/// ln x for x in (0, 1], by additions, products and quotients alone, which are the same on every machine; a library's logarithm
/// need not be, and ranks must agree on the order.
double logarithm(double x) {
    int exponent = 0;
    double const mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
    double const z = (mantissa - 0.75) / (mantissa + 0.75);
    double const square = z * z;
    double sum = 0;
    for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;  // artanh z / z, |z| <= 1/5
    constexpr double ln_2 = 0.693147180559945309417232;
    constexpr double ln_three_quarters = -0.287682072451780927439219;
    return exponent * ln_2 + ln_three_quarters + 2 * z * sum;
}

}  // namespace

weighted_draws::weighted_draws(std::vector<double> weights, std::size_t draws, bool replacement)
    : weights_(std::move(weights)), draws_(draws), replacement_(replacement) {
    double sum = 0;
    std::size_t positive = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        if (!(weights_[i] >= 0) || std::isinf(weights_[i]))
            throw error(errc::usage,
                        fmt::format("sampler: the weight of sample {} is {}; give 0 or a positive number", i, weights_[i]));
        sum += weights_[i];
        positive += weights_[i] > 0 ? 1 : 0;
    }
    if (std::isinf(sum)) throw error(errc::usage, "sampler: the sum of the weights is beyond double; give smaller ones");
    if (draws_ > 0 && positive == 0)
        throw error(errc::usage, fmt::format("sampler: none of {} weights is positive; give one that is", weights_.size()));
    if (!replacement_ && draws_ > positive)
        throw error(errc::usage,
                    fmt::format("sampler: {} draws without replacement from {} samples with positive weight; draw at "
                                "most that many, or with replacement",
                                draws_, positive));
    if (replacement_ && positive > 0) make_table(sum);
}

void weighted_draws::make_table(double sum) {
    std::size_t const n = weights_.size();
    keep_.resize(n);
    other_.resize(n);
    std::vector<std::uint64_t> small, large;
    std::size_t heaviest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        keep_[i] = weights_[i] / sum * static_cast<double>(n);
        other_[i] = i;
        (keep_[i] < 1 ? small : large).push_back(i);
        if (weights_[i] > weights_[heaviest]) heaviest = i;
    }
    while (!small.empty() && !large.empty()) {
        std::uint64_t const less = small.back(), more = large.back();
        small.pop_back();
        other_[less] = more;
        keep_[more] -= 1 - keep_[less];
        if (keep_[more] < 1) {
            large.pop_back();
            small.push_back(more);
        }
    }
    // What is left is 1 but for rounding; a weight of 0 must not be drawn by it.
    for (std::uint64_t const i : large) keep_[i] = 1;
    for (std::uint64_t const i : small) {
        if (weights_[i] > 0)
            keep_[i] = 1;
        else
            other_[i] = heaviest;
    }
}

std::uint64_t weighted_draws::draw(std::uint64_t key, std::uint64_t position) const noexcept {
    std::uint64_t const first = hash(key, position);
    auto const place = static_cast<std::size_t>((static_cast<wide>(first) * keep_.size()) >> 64);
    return unit(permutation::mix(first + key)) <= keep_[place] ? place : other_[place];
}

std::shared_ptr<weighted_draws::order const> weighted_draws::order_of(std::uint64_t key) const {
    std::lock_guard const lock(mutex_);
    if (kept_ && kept_key_ == key) return kept_;
    std::vector<std::pair<double, std::uint64_t>> times;
    for (std::size_t i = 0; i < weights_.size(); ++i)
        if (weights_[i] > 0) times.emplace_back(-logarithm(unit(hash(key, i))) / weights_[i], i);
    auto const middle = times.begin() + static_cast<std::ptrdiff_t>(draws_);
    std::partial_sort(times.begin(), middle, times.end());
    auto made = std::make_shared<order>();
    for (auto it = times.begin(); it != middle; ++it) made->push_back(it->second);
    kept_key_ = key;
    kept_ = made;
    return kept_;
}

void weighted_draws::fill(std::uint64_t key, std::uint64_t first, std::uint64_t step, std::span<std::uint64_t> out) const {
    if (replacement_) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = draw(key, first + i * step);
        return;
    }
    auto const all = order_of(key);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = (*all)[first + i * step];
}

}  // namespace muster
