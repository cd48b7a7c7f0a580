#include "launch/watch/stop_watch.hpp"

#include <fmt/format.h>

namespace muster {

double stop_watch::now_s() const {
    return duration(event_loop::clock::now() - begin_).count();
}

void stop_watch::start(duration pause) {
    looks_ = {.pause_s = pause.count()};
    look_later();
}

void stop_watch::look_later() {
    plan_look(looks_, now_s());
    loop_.after(duration(looks_.pause_s), [this] { look(); });
}

void stop_watch::look() {
    begin_look(looks_, now_s());
    if (!run_.active()) return look_later();
    std::vector<int> ranks;
    for (auto const& one : known_.ranks)
        if (one.running()) ranks.push_back(one.rank);
    run_.look(ranks, [this](held_ranks const& held) { take(held); });
    look_later();
}

void stop_watch::take(held_ranks const& held) {
    auto const twice = end_look(looks_, held);
    if (!run_.active()) return;
    for (auto const& [rank, wait] : twice.blocked)
        if (known_[rank].running())
            run_.say(
                fmt::format("note: {} has been in an uninterruptible wait{} for more than {}, as for a file system or a driver",
                            known_.name_of(known_[rank]), wait.where.empty() ? "" : " in " + wait.where,
                            format_duration(duration(looks_.pause_s))));
    for (int const rank : twice.stopped) {
        if (!known_[rank].running() || known_[rank].killed_as_stopped) continue;
        run_.say(fmt::format("note: {} has been stopped (SIGSTOP, or a frozen cgroup) for more than {}: killing it",
                             known_.name_of(known_[rank]), format_duration(duration(looks_.pause_s))));
        run_.kill(rank);
    }
}

}  // namespace muster
