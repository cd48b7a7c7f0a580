#include "comm/exchange/observe/clock.hpp"

#include <algorithm>
#include <limits>

namespace muster {

clock_offset estimate_offset(std::span<clock_reading const> readings) noexcept {
    if (readings.empty()) return {};
    std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
    for (auto const& each : readings) {
        least = std::max(least, each.before_there - each.after_here);
        most = std::min(most, each.after_there - each.before_here);
    }
    double const low = static_cast<double>(least) / 1e3, high = static_cast<double>(most) / 1e3;
    return {(low + high) / 2, (high - low) / 2};
}

}  // namespace muster
