// Work of other programs on this machine: counts it before and during a measurement.
#pragma once

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

namespace muster {

/// CPU seconds that these CPUs have worked since the machine started, by the text of /proc/stat and the clock ticks a second.
/// Pure.
double worked_s(std::string_view stat, std::span<int const> cpus, double ticks_per_s);

/// Counts on the CPUs that this process may run on. Where the system tells nothing, no work is seen.
class other_work {
  public:
    /// Sleeps for a quarter of a second and takes what is done meanwhile for the work of others before the runs, which begin now.
    other_work();

    /// CPU seconds of this process and of its children that have ended, since the runs began.
    double own_s() const;

    /// Counts anew from now: what was done until now belongs to no run.
    void begin();
    /// CPUs that others kept busy before the runs, and since these began.
    double before() const noexcept { return before_; }
    double during(double measured_s) const;
    std::size_t cpus() const noexcept { return cpus_.size(); }

  private:
    std::vector<int> cpus_;
    double before_ = 0;  ///< CPUs that others used
    double worked_at_start_ = 0, own_at_start_ = 0;
    std::chrono::steady_clock::time_point start_;
};

}  // namespace muster
