#include "io/stage/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/units.hpp"

namespace muster::stage {

std::function<void(std::uint64_t)> progress(std::string what, std::uint64_t total, bool show) {
    if (!show || total == 0 || ::isatty(STDERR_FILENO) == 0) return [](std::uint64_t) {};
    using clock = std::chrono::steady_clock;
    return [what = std::move(what), total, last = clock::time_point()](std::uint64_t done) mutable {
        auto const now = clock::now();
        if (done < total && now - last < std::chrono::milliseconds(100)) return;
        last = now;
        if (done >= total)
            fmt::print(stderr, "\r\033[K");
        else
            fmt::print(stderr, "\r{} {} % ({})\033[K", what, done * 100 / total, format_bytes(done));
        std::fflush(stderr);
    };
}

}  // namespace muster::stage
