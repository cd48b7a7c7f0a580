#include "schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::simulation {

schedule draw_schedule(std::uint64_t seed) {
    dice by(seed);
    schedule made{.seed = seed};
    made.ranks = by.one_in(3) ? by.between(1, 8) : by.between(2, 4);
    made.hosts = by.one_in(3) ? by.between(1, 4) : 1;
    made.over_nodes = made.hosts > 1;
    made.least = by.one_in(3) ? by.between(1, made.ranks) : 1;
    made.most = made.ranks;
    switch (by.below(5)) {
        case 0: made.spares = by.between(1, 2); break;
        case 1: made.warm_spares = by.between(1, 2); break;
        case 2:
            made.by_hosts = true;
            made.most = made.ranks + by.between(0, 2);
            made.resets = by.one_in(5) ? by.between(0, 3) : -1;
            break;
        default: break;
    }
    made.announces_late = by.one_in(3);
    made.comm_deadline_s = by.one_in(4) ? 1800 : 30;
    int const faults = by.one_in(4) ? by.between(2, 4) : by.between(1, 2);
    bool const clustered = by.one_in(2);
    double const around_s = by.seconds(0.3, 2.5);
    using kind = fault::kind;
    for (int i = 0; i < faults; ++i) {
        fault one{.what = static_cast<kind>(by.below(static_cast<int>(kind::count_)))};
        if (by.one_in(3)) one.what = by.one_in(2) ? kind::killed : kind::stopped;
        one.at_s = clustered ? around_s + by.seconds(0, 0.1) : by.seconds(0, 3);
        one.whom = by.below(made.ranks + made.spares + made.warm_spares);
        one.lasts_s = by.one_in(3) ? -1 : by.seconds(0.05, 4);
        if (one.what == kind::computes) one.lasts_s = by.one_in(4) ? by.seconds(600, 900) : by.seconds(0.2, 8);
        if (one.what == kind::unkillable) one.at_s /= 2, one.lasts_s = by.seconds(0.5, 20);
        if (one.what == kind::host_silent) one.whom = by.below(made.hosts), one.lasts_s = by.one_in(2) ? -1 : by.seconds(0.1, 5);
        if (one.what == kind::execs) one.number = by.below(2), one.at_s = by.one_in(2) ? by.seconds(0, 0.6) : one.at_s;
        if (one.what == kind::hosts_change) one.number = by.between(0, made.ranks + 3);
        if (one.what == kind::host_silent && made.hosts == 1) one.what = kind::collective;
        if (one.what == kind::hosts_change && !made.by_hosts) one.what = kind::departs;
        made.faults.push_back(one);
    }
    for (int more = made.by_hosts ? by.below(4) : 0; more > 0; --more)
        made.faults.push_back({.what = kind::hosts_change, .at_s = by.seconds(0, 2), .number = by.between(1, made.ranks + 3)});
    if (made.by_hosts) made.newcomer_limit_s = by.one_in(2) ? 60 : 2;
    if (made.by_hosts && made.hosts > 1 && by.one_in(2))
        made.faults.push_back({.what = kind::host_silent, .at_s = by.seconds(0.5, 3), .whom = by.below(made.hosts)});
    return made;
}

std::string describe(schedule const& of) {
    auto text = fmt::format("{} ranks on {} host{}, at least {}", of.ranks, of.hosts, of.hosts == 1 ? "" : "s", of.least);
    if (of.spares > 0) text += fmt::format(", {} may be started in place of lost ones", of.spares);
    if (of.warm_spares > 0) text += fmt::format(", {} spares wait", of.warm_spares);
    if (of.by_hosts) text += fmt::format(", hosts come and go, at most {}", of.most);
    if (of.resets >= 0) text += fmt::format(", {} resets", of.resets);
    if (of.announces_late) text += ", announced after the first rendezvous";
    return text;
}

std::string describe(fault const& one) {
    constexpr std::array<char const*, static_cast<std::size_t>(fault::kind::count_)> names{"is killed",
                                                                                           "is stopped",
                                                                                           "departs",
                                                                                           "computes",
                                                                                           "has a collective that fails",
                                                                                           "is silent (host)",
                                                                                           "cannot be killed",
                                                                                           "(discovery) finds slots",
                                                                                           "has a message replayed",
                                                                                           "starts another program"};
    return fmt::format("at {:.3f} s {} {} ({:.2f} s, {})", one.at_s, one.whom, names[static_cast<std::size_t>(one.what)],
                       one.lasts_s, one.number);
}

}  // namespace muster::simulation
