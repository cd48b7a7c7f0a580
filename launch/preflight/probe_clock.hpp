// Clock and limits that the prober and its probes share.
#pragma once

#include <chrono>

#include "base/units.hpp"

namespace muster {

/// A prober or a probe that is silent for so long is lost.
inline constexpr duration probe_lost_after{15};

/// Seconds since 1970 by this machine's clock.
inline double clock_now() {
    return duration(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace muster
