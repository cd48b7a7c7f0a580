// Clock readings of two ranks bound how far their clocks are apart.
#pragma once

#include <cstdint>
#include <span>

#include "comm/exchange/observe/timeline.hpp"

namespace muster {

/// What two ranks read off their clocks around one collective in which each waits for the other: before it starts and after it
/// has ended, in nanoseconds.
struct clock_reading {
    std::int64_t before_there = 0, after_there = 0;  ///< rank 0
    std::int64_t before_here = 0, after_here = 0;    ///< this rank
};

/// The bounds that hold in every reading: what starts there ends later here, and the other way round. The offset is their middle,
/// the error half their distance. No readings: zero. Pure.
clock_offset estimate_offset(std::span<clock_reading const> readings) noexcept;

}  // namespace muster
