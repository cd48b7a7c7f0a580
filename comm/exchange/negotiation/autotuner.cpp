#include "comm/exchange/negotiation/autotuner.hpp"

#include <algorithm>

namespace muster {

namespace {

double quantile(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

}  // namespace

autotuner::autotuner(tuning const& start) {
    constexpr std::size_t least_fusion = std::size_t{1} << 18, most_fusion = std::size_t{1} << 30;
    constexpr duration least_cycle{50e-6}, most_cycle{20e-3};
    candidates_.push_back(start);
    for (double const fusion : {0.25, 1.0, 4.0})
        for (double const cycle : {0.25, 1.0, 4.0}) {
            tuning one = start;
            if (fusion != 1.0)
                one.fusion_bytes = std::clamp(static_cast<std::size_t>(fusion * static_cast<double>(start.fusion_bytes)),
                                              least_fusion, most_fusion);
            if (cycle != 1.0) one.cycle_time = std::clamp(cycle * start.cycle_time, least_cycle, most_cycle);
            if (std::find(candidates_.begin(), candidates_.end(), one) == candidates_.end()) candidates_.push_back(one);
        }
    samples_.resize(candidates_.size());
}

bool autotuner::sample(double bytes_per_second) {
    if (finished_) return false;
    auto const before = current();
    samples_[turn_].push_back(bytes_per_second);
    if (!finalist_) {
        turn_ = (turn_ + 1) % candidates_.size();
        if (turn_ == 0 && samples_.back().size() == first_samples) choose_finalist();
    } else {
        turn_ = turn_ == 0 ? *finalist_ : 0;
        if (turn_ == 0 && samples_[*finalist_].size() == last_samples) decide();
    }
    return current() != before;
}

void autotuner::choose_finalist() {
    std::size_t best = 0;
    for (std::size_t i = 1; i < candidates_.size(); ++i)
        if (best == 0 || quantile(samples_[i], 0.5) > quantile(samples_[best], 0.5)) best = i;
    if (best == 0) {
        finished_ = true;
        return;
    }
    finalist_ = best;
    samples_[0].clear();  // the lucky one of many starts anew, and so does its rival
    samples_[best].clear();
}

void autotuner::decide() {
    double const start = quantile(samples_[0], 0.5);
    bool const better = quantile(samples_[*finalist_], 0.5) > 1.03 * start && quantile(samples_[*finalist_], 0.25) > start;
    turn_ = better ? *finalist_ : 0;
    finished_ = true;
}

}  // namespace muster
