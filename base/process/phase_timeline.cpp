#include "base/process/phase_timeline.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <ctime>

namespace muster {

namespace {

double milliseconds_of(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

}  // namespace

void end_phase(std::string_view name) {
    if (!spdlog::should_log(spdlog::level::trace)) return;
    // The time before main is known as processor time only: the kernel tells the start of a process in steps of 10 ms.
    double const cpu = milliseconds_of(CLOCK_PROCESS_CPUTIME_ID);
    double const now = milliseconds_of(CLOCK_MONOTONIC);
    static double const first = now - cpu;
    static double last = first;
    spdlog::trace("phase {:>7.2f} ms  +{:>6.2f} ms  cpu {:>6.2f} ms  {}", now - first, now - last, cpu, name);
    last = milliseconds_of(CLOCK_MONOTONIC);
}

}  // namespace muster
