// The looks at stopped ranks: one that is stopped at two of them in a row is to be killed.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace muster {

/// Plain values and pure functions: stop_watch drives them. Times are in seconds on a clock that only goes forward.
struct stop_looks {
    double pause_s = 5;             ///< between two looks
    double due_s = 0;               ///< when the next one was to begin
    std::vector<int> stopped = {};  ///< at the last look
};

/// Plans the next look: the caller sets a timer for it at the same moment.
inline void plan_look(stop_looks& looks, double now_s) {
    looks.due_s = now_s + looks.pause_s;
}

/// Begins a look. A late one was held up together with this process, perhaps by a suspended job, whose ranks do not all resume at
/// the same moment: it counts as the first one.
inline void begin_look(stop_looks& looks, double now_s) {
    if (now_s - looks.due_s > looks.pause_s) looks.stopped.clear();
}

/// Ends it. Returns who is to be killed.
inline std::vector<int> end_look(stop_looks& looks, std::vector<int> const& stopped) {
    auto const before = std::exchange(looks.stopped, stopped);
    std::vector<int> twice;
    std::copy_if(stopped.begin(), stopped.end(), std::back_inserter(twice),
                 [&](int rank) { return std::find(before.begin(), before.end(), rank) != before.end(); });
    return twice;
}

}  // namespace muster
