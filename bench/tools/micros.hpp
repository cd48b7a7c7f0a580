// The clock of measurements: returns microseconds since a point in time.
#pragma once

#include <chrono>

namespace muster {

inline double micros_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace muster
