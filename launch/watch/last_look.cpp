#include "launch/watch/last_look.hpp"

#include <algorithm>
#include <utility>

namespace muster {

namespace {

constexpr duration first_pause{4};
constexpr duration longest_pause{60};
constexpr duration before_the_end{1};

}  // namespace

void last_look::start() {
    pause_ = first_pause;
    loop_.after(pause_, [this] { look_if_silent(); });
    if (!ends_at_) return;
    duration const left = *ends_at_ - std::chrono::system_clock::now() - before_the_end;
    if (left > duration(0)) loop_.after(left, [this] { look(); });
}

void last_look::look_if_silent() {
    if (!run_.active()) return;
    if (std::exchange(wrote_, false)) {
        pause_ = first_pause;
    } else {
        look();
        pause_ = std::min(pause_ * 2, longest_pause);
    }
    loop_.after(pause_, [this] { look_if_silent(); });
}

void last_look::look() {
    if (!run_.active()) return;
    run_.inspect([this](std::vector<rank_row> const& rows) {
        if (!run_.active()) return;
        rows_ = rows;
        seen_at_ = event_loop::clock::now();
    });
}

std::vector<rank_row> last_look::complete(std::vector<rank_row> const& rows) const {
    return with_last_seen(rows, rows_, duration(event_loop::clock::now() - seen_at_).count());
}

}  // namespace muster
