#include "launch/watch/run_deadlines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "launch/ranks/rank_name.hpp"
#include "launch/system/signals.hpp"

namespace muster {

run_deadlines::run_deadlines(event_loop& loop, run_options const& options,
                             std::optional<std::chrono::system_clock::time_point> ends_at, duration age, supervision what)
    : loop_(loop), options_(options), ends_at_(ends_at), age_(age), run_(std::move(what)) {}

void run_deadlines::start() {
    note_output();
    if (options_.timeout)
        loop_.after(std::max(*options_.timeout - age_, duration(0)), [this] {
            if (!run_.active()) return;
            run_.expire(fmt::format("still running after --timeout {}: ending {}", format_duration(*options_.timeout),
                                    count_of_ranks(run_.running())));
        });
    if (options_.idle_timeout) loop_.after(*options_.idle_timeout, [this] { check_idle(); });
}

void run_deadlines::check_idle() {
    if (!run_.active()) return;
    duration const idle = event_loop::clock::now() - last_output_;
    if (idle < *options_.idle_timeout) {
        loop_.after(*options_.idle_timeout - idle, [this] { check_idle(); });
        return;
    }
    run_.expire(fmt::format("no rank has written anything for {} (--idle-timeout): ending {}", format_duration(idle),
                            count_of_ranks(run_.running())));
}

void run_deadlines::start_early_signal() {
    if (!options_.signal_before_end || !ends_at_) return;
    duration const left = *ends_at_ - std::chrono::system_clock::now() - options_.signal_before_end->before;
    loop_.after(std::max(left, duration(0)), [this] {
        if (!run_.active()) return;
        auto const [number, before] = *options_.signal_before_end;
        run_.warn(fmt::format("{} before the job's time is up", format_duration(before)), number);
    });
}

}  // namespace muster
