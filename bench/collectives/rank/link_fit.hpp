// The fit of a link: latency alpha and rate from the times of messages of several sizes. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace muster {

struct timed_size {
    double bytes = 0, us = 0;
    bool operator==(timed_size const&) const = default;
};

/// us = alpha_us + bytes / gbs / 1000, least squares of the relative errors.
struct link_fit {
    double alpha_us = 0, gbs = 0;
    double relative_rms = 0;
    std::vector<double> left_out;  ///< of each size, the relative error of what the others' fit predicts
    double us(double bytes) const noexcept { return alpha_us + bytes / gbs / 1e3; }
};

/// Nothing of fewer than three sizes, or where times do not grow with them. A latency below 0 is none.
std::optional<link_fit> fit_link(std::span<timed_size const> sizes);

}  // namespace muster
