// The machine's clock, which may be set.
#pragma once

#include <chrono>

namespace muster {

/// Returns seconds since 1970.
inline double clock_now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace muster
