// The looks at ranks that stand still: one that is stopped at two of them in a row is to be killed, one in an uninterruptible wait named.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "launch/observe/working_process.hpp"

namespace muster {

/// Holds what one look has found. Ranks are numbered as at the start.
struct held_ranks {
    std::vector<int> stopped = {};  ///< or in a frozen cgroup
    std::map<int, blocked_wait> blocked = {};
};

/// Plain values and pure functions: stop_watch drives them. Times are in seconds on a clock that only goes forward.
struct stop_looks {
    double pause_s = 5;  ///< between two looks
    double due_s = 0;    ///< when the next one was to begin
    held_ranks last = {};
    std::map<int, blocked_wait> named = {};
};

/// Plans the next look: the caller sets a timer for it at the same moment.
inline void plan_look(stop_looks& looks, double now_s) {
    looks.due_s = now_s + looks.pause_s;
}

/// Begins a look. A late one was held up together with this process, perhaps by a suspended job, whose ranks do not all resume at
/// the same moment: it counts as the first one.
inline void begin_look(stop_looks& looks, double now_s) {
    if (now_s - looks.due_s > looks.pause_s) looks.last = {};
}

/// Ends it. Returns who was so at the last one, too: whoever is stopped is to be killed, whoever is in the same wait named, which
/// is done once.
inline held_ranks end_look(stop_looks& looks, held_ranks const& found) {
    auto const before = std::exchange(looks.last, found);
    held_ranks twice;
    std::copy_if(found.stopped.begin(), found.stopped.end(), std::back_inserter(twice.stopped),
                 [&](int rank) { return std::find(before.stopped.begin(), before.stopped.end(), rank) != before.stopped.end(); });
    for (auto const& [rank, wait] : found.blocked) {
        auto const same = [&, rank = rank, &wait = wait](std::map<int, blocked_wait> const& those) {
            auto const its = those.find(rank);
            return its != those.end() && its->second == wait;
        };
        if (same(before.blocked) && !same(looks.named)) twice.blocked[rank] = looks.named[rank] = wait;
    }
    return twice;
}

}  // namespace muster
