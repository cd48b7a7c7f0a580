#include "comm/exchange/negotiation/death_watch.hpp"

#include <algorithm>

namespace muster::detail {

std::vector<late_rank> death_watch::find_dead(operation const& what, exchange_clock::time_point began,
                                              exchange_clock::time_point now) {
    using namespace std::chrono_literals;
    bool const suspected = dead_since_ > began;
    // What the dead have sent may still be on its way.
    if (now - std::max(began, last_look_) < (suspected ? 100ms : 200ms)) return {};
    last_look_ = now;
    auto late = what.late_ranks();
    std::erase_if(late, [](late_rank const& each) { return !each.dead; });
    if (late.empty() || suspected) return late;
    dead_since_ = now;
    return {};
}

}  // namespace muster::detail
