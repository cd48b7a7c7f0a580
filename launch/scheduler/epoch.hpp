// Points in time as schedulers write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace muster {

/// So many seconds after 1970; nothing for what is no time of a job: not above 0, or beyond the year 2190. The clock counts
/// nanoseconds in 64 bits, which 9.2e9 seconds would overflow; a walltime may still be added to the result.
inline std::optional<std::chrono::system_clock::time_point> from_epoch(std::int64_t seconds) noexcept {
    if (seconds <= 0 || seconds > 7'000'000'000) return std::nullopt;
    return std::chrono::system_clock::time_point{std::chrono::seconds{seconds}};
}

}  // namespace muster
