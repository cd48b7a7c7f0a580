// Which fusion threshold and cycle time are the fastest here.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/units.hpp"

namespace muster {

struct tuning {
    std::size_t fusion_bytes = 0;
    duration cycle_time{0};
    bool operator==(tuning const&) const = default;
};

/// A plain value, fed with how fast each setting turned out to be. Tries the start and settings around it in turns, so that a
/// drift meets all alike; then the best of them and the start alone, in turns. Ends at the start unless the other one's median is
/// better by 3% and its lower quartile better than the start's median: what cannot be measured is not changed.
class autotuner {
  public:
    /// Quarter and four times each of the start's two numbers (fusion within 256 KiB … 1 GiB, cycle within 50 us … 20 ms), and
    /// the start.
    explicit autotuner(tuning const& start);

    /// What to use now.
    tuning const& current() const noexcept { return candidates_[turn_]; }
    bool finished() const noexcept { return finished_; }
    std::vector<tuning> const& candidates() const noexcept { return candidates_; }

    /// current() has moved so many bytes a second. True if current() is another now. Ignored when finished.
    bool sample(double bytes_per_second);

  private:
    static constexpr std::size_t first_samples = 5, last_samples = 9;

    void choose_finalist();
    void decide();

    std::vector<tuning> candidates_;            // the start first
    std::vector<std::vector<double>> samples_;  // of each
    std::size_t turn_ = 0;
    std::optional<std::size_t> finalist_;
    bool finished_ = false;
};

}  // namespace muster
