#include "schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::simulation {

namespace {

/// By dice of their own: the rest of a schedule does not depend on them.
void draw_habits(schedule& made) {
    made.watches_stops = dice(made.seed ^ 0x570B5u).one_in(2);
    dice by(made.seed ^ 0xB1A3Eu);
    made.in_job = by.one_in(3);
    made.without_handler = !made.never_announces && by.one_in(8);
}

/// Those of the script that names hosts, too.
void draw_script_faults(schedule& made) {
    dice by(made.seed ^ 0x5C217u);
    using kind = fault::kind;
    for (int more = made.by_hosts ? by.below(3) : 0; more > 0; --more) {
        constexpr std::array kinds{kind::script_fails, kind::script_hangs, kind::script_killed, kind::script_stopped};
        fault one{.what = kinds[static_cast<std::size_t>(by.below(4))], .at_s = by.seconds(0, 3)};
        one.lasts_s = one.what == kind::script_stopped && by.one_in(3) ? -1 : by.seconds(0.1, 5);
        if (one.what == kind::script_hangs) one.lasts_s = script_limit_s;
        made.faults.push_back(one);
    }
}

}  // namespace

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
        fault one{.what = static_cast<kind>(by.below(static_cast<int>(kind::fails)))};
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
    draw_habits(made);
    draw_script_faults(made);
    return made;
}

schedule draw_kept_schedule(std::uint64_t seed) {
    dice by(seed ^ 0xA5A5A5A5u);
    schedule made{.seed = seed};
    made.keeps = true;
    made.hosts = by.between(2, 4);
    made.ranks = made.hosts * by.between(1, 2);
    made.most = made.ranks;
    made.over_nodes = true;
    made.spare_hosts = by.one_in(3) ? 1 : 0;
    made.least = by.one_in(3) ? made.ranks : 1;
    made.never_announces = by.one_in(2);
    made.by_number = made.never_announces && !by.one_in(3);
    made.announces_late = by.one_in(4);
    if (!made.never_announces && by.one_in(4)) made.warm_spares = made.spare_hosts = 1;
    made.restarts = by.between(1, 4);
    made.to_neighbours = !by.one_in(5);
    made.step_s = by.seconds(0.2, 1);
    using kind = fault::kind;
    int const count = by.between(1, 4);
    double const around_s = by.seconds(2, 15);
    bool const clustered = by.one_in(2);
    auto const of_rank = [](kind what) { return what < kind::host_silent || what == kind::fails; };
    for (int i = 0; i < count; ++i) {
        constexpr std::array kinds{kind::killed,         kind::stopped,       kind::departs,        kind::computes,
                                   kind::collective,     kind::host_silent,   kind::fails,          kind::keeper_killed,
                                   kind::keeper_stopped, kind::leader_killed, kind::leader_stopped, kind::cut,
                                   kind::memory_full,    kind::slow,          kind::no_start};
        fault one{.what = kinds[static_cast<std::size_t>(by.below(static_cast<int>(kinds.size())))]};
        if (by.one_in(3)) one.what = by.one_in(2) ? kind::killed : kind::keeper_killed;
        if (by.one_in(8)) one.what = kind::host_silent;
        one.at_s = clustered ? around_s + by.seconds(0, 3) : by.seconds(1, 40);
        one.whom = by.below(of_rank(one.what) ? made.ranks + 2 * made.warm_spares : made.hosts + made.spare_hosts);
        one.lasts_s = by.one_in(3) ? -1 : by.seconds(0.2, 20);
        if (one.what >= kind::memory_full) one.lasts_s = by.seconds(1, 20);
        if (one.what == kind::computes) one.lasts_s = by.seconds(0.2, 8);
        if (one.what == kind::host_silent) one.lasts_s = -1;
        made.faults.push_back(one);
    }
    // A fault of a keeper matters when the ranks begin again.
    if (by.one_in(2)) made.faults.push_back({.what = kind::killed, .at_s = by.seconds(5, 45), .whom = by.below(made.ranks)});
    // … and one of a rank before it has opened its memory, or just after all have begun again, with fewer ranks perhaps.
    if (by.one_in(6)) made.faults.push_back({.what = kind::killed, .at_s = by.seconds(0.3, 3), .whom = by.below(made.ranks)});
    if (by.one_in(6)) {
        double const at_s = by.seconds(3, 20);
        if (by.one_in(2)) made.faults.clear(), made.least = 1, made.spare_hosts = made.warm_spares = 0, made.restarts = 3;
        made.faults.push_back({.what = kind::host_silent, .at_s = at_s, .whom = by.one_in(2) ? 0 : by.below(made.hosts)});
        made.faults.push_back({.what = kind::killed, .at_s = at_s + by.seconds(13, 16.5), .whom = 0});
    }
    // Ranks that die while they commit leave copies that not all have.
    for (auto& one : made.faults) one.number = one.what == kind::killed && by.one_in(3);
    if (by.one_in(6)) {
        double const at_s = by.seconds(3, 20);
        made.faults.push_back({.what = kind::killed, .at_s = at_s, .whom = by.below(made.ranks), .number = 1});
        made.faults.push_back({.what = kind::killed, .at_s = at_s + by.seconds(1, 3), .whom = by.below(made.ranks), .number = 1});
    }
    draw_habits(made);
    return made;
}

std::string describe(schedule const& of) {
    auto text = fmt::format("{} ranks on {} host{}, at least {}", of.ranks, of.hosts, of.hosts == 1 ? "" : "s", of.least);
    if (of.spares > 0) text += fmt::format(", {} may be started in place of lost ones", of.spares);
    if (of.warm_spares > 0) text += fmt::format(", {} spares wait", of.warm_spares);
    if (of.by_hosts) text += fmt::format(", hosts come and go, at most {}", of.most);
    if (of.resets >= 0) text += fmt::format(", {} resets", of.resets);
    if (of.keeps)
        text += fmt::format(", {} restarts, {} idle hosts, states kept {}", of.restarts, of.spare_hosts,
                            of.to_neighbours ? "by the next host, too" : "on their hosts");
    if (of.never_announces) text += of.by_number ? ", never announced, kept by number" : ", never announced";
    if (of.without_handler) text += ", announced, but ends at a failure";
    if (of.in_job) text += ", in a job";
    if (of.announces_late) text += ", announced after the first rendezvous";
    return text;
}

std::string describe(fault const& one) {
    constexpr std::array<char const*, static_cast<std::size_t>(fault::kind::count_)> names{
        "is killed",
        "is stopped",
        "departs",
        "computes",
        "has a collective that fails",
        "is silent (host)",
        "cannot be killed",
        "(discovery) finds slots",
        "has a message replayed",
        "starts another program",
        "fails",
        "loses its keeper (host)",
        "has a keeper that is stopped (host)",
        "(the keepers' leader) is killed",
        "(the keepers' leader) is stopped",
        "has its next copy cut off (host)",
        "has full memory (host)",
        "(copies) are slow",
        "can start no keeper (host)",
        "(the script of hosts) fails",
        "(the script of hosts) hangs",
        "(the process of the script) is killed",
        "(the process of the script) is stopped"};
    return fmt::format("at {:.3f} s {} {} ({:.2f} s, {})", one.at_s, one.whom, names[static_cast<std::size_t>(one.what)],
                       one.lasts_s, one.number);
}

}  // namespace muster::simulation
