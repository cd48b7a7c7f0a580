#include "launch/watch/stop_watch.hpp"

#include <fmt/format.h>

namespace muster {

void stop_watch::look_later() {
    due_ = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(pause_);
    loop_.after(pause_, [this] { look(); });
}

/// A late look was held up together with this process, perhaps by a suspended job, whose ranks do not all resume at the same
/// moment.
void stop_watch::look() {
    if (!run_.active()) return look_later();
    if (duration(event_loop::clock::now() - due_) > pause_) stopped_.clear();
    std::vector<int> ranks;
    for (auto const& one : known_.ranks)
        if (one.running()) ranks.push_back(one.rank);
    run_.look(ranks, [this](std::vector<int> const& stopped) { take(stopped); });
    look_later();
}

void stop_watch::take(std::vector<int> const& stopped) {
    auto const before = std::exchange(stopped_, {stopped.begin(), stopped.end()});
    if (!run_.active()) return;
    for (int const rank : stopped) {
        if (!before.contains(rank) || !known_[rank].running() || known_[rank].killed_as_stopped) continue;
        run_.say(fmt::format("note: {} has been stopped (SIGSTOP, or a frozen cgroup) for more than {}: killing it",
                             known_.name_of(known_[rank]), format_duration(pause_)));
        run_.kill(rank);
    }
}

}  // namespace muster
