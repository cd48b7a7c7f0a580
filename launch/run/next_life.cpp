#include "launch/run/next_life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/command/print_note.hpp"
#include "base/throw_error.hpp"
#include "launch/elastic/lives.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/record/growth.hpp"
#include "launch/run/gather_hosts.hpp"
#include "launch/run/prepare_run.hpp"

namespace muster {

namespace {

bool holds(std::vector<std::string> const& names, std::string const& name) {
    return std::ranges::find(names, name) != names.end();
}

bool look_alike(node const& a, node const& b) {
    return a.slots == b.slots && a.gpus == b.gpus && a.cpus == b.cpus;
}

/// Returns how many ranks a node alone can take; 0 if that is not known.
int room_of(allocation const& given, node const& one, placement_request const& place) {
    allocation alone{.scheduler = given.scheduler, .job_id = given.job_id, .nodes = {one}, .fixed = given.fixed};
    auto wanted = place;
    wanted.ranks = wanted.nodes = std::nullopt;
    try {
        return map_ranks(alone, wanted).world_size();
    } catch (error const&) {
        return 0;
    }
}

/// Returns the slots that the run uses, then those of spare nodes, then the other slots of its nodes.
std::vector<slot> list_slots(allocation const& active, mapping const& map, std::vector<node> const& spares,
                             placement_request const& place) {
    std::vector<slot> pool;
    auto const add = [&](node const& one, int from, int to) {
        for (int i = from; i < to; ++i) pool.push_back({one.name, i});
    };
    for (std::size_t n = 0; n < active.nodes.size(); ++n) add(active.nodes[n], 0, map.ranks_per_node[n]);
    for (auto const& spare : spares) {
        int room = room_of(active, spare, place);
        for (std::size_t n = 0; n < active.nodes.size(); ++n)
            if (look_alike(active.nodes[n], spare)) room = std::max(room, map.ranks_per_node[n]);
        add(spare, 0, room);
    }
    for (std::size_t n = 0; n < active.nodes.size(); ++n)
        add(active.nodes[n], map.ranks_per_node[n], room_of(active, active.nodes[n], place));
    return pool;
}

/// Removes the last nodes from the allocation; with one node, lowers the number of ranks instead.
std::vector<node> set_spares_aside(allocation& given, int count, placement_request& place) {
    auto const nodes = static_cast<int>(given.nodes.size());
    if (count == 0) return {};
    if (nodes == 1) {
        int const room = room_of(given, given.nodes.front(), place);
        if (int const ranks = place.ranks.value_or(1); ranks + count > room)
            throw_error(errc::placement, "--spares {}: {} has {} slots, too few for {} and the idle ones; use fewer{}", count,
                        given.nodes.front().name, room, count_of_ranks(static_cast<std::size_t>(ranks)),
                        given.nodes.front().gpus.value_or(0) > 0 ? "" : fmt::format(", or --slots-per-node {}", ranks + count));
        if (!place.ranks) place.ranks = room - count;
        return {};
    }
    if (count >= nodes)
        throw_error(errc::placement, "--spares {} leaves none of the {} nodes for ranks; use --spares {} or fewer", count, nodes,
                    nodes - 1);
    std::vector<node> spares(given.nodes.end() - count, given.nodes.end());
    given.nodes.resize(static_cast<std::size_t>(nodes - count));
    return spares;
}

/// Maps like map_ranks(); an error says that the ranks might fit with the spare nodes.
mapping map_beside(std::vector<node> const& idle, int spares, allocation const& given, placement_request const& place) {
    try {
        return map_ranks(given, place);
    } catch (error const& e) {
        if (idle.empty() || e.code() != errc::placement) throw;
        std::vector<std::string> names;
        for (auto const& one : idle) names.push_back(one.name);
        throw_error(e.code(), "without {}, which --spares {} keeps idle: {}", list_some(names, "nodes"), spares, e.what());
    }
}

generation_wishes wishes_of(run_options const& options, run_life const& life) {
    int const all =
        life.ends.empty() ? static_cast<int>(life.now.members.size()) : static_cast<int>(life.ends.front().members.size());
    return {.least = options.least_ranks.value_or(all), .most = all, .restart = true};
}

/// Names members by the mapping, which may not number them host by host.
void name_members(run_life& life, allocation const& given, mapping const& map) {
    int number = life.is_first() ? 0 : life.now.born - static_cast<int>(life.now.members.size());
    life.now.members.clear();
    for (auto const& place : map.places())
        life.now.members.push_back({number++, {given.nodes[static_cast<std::size_t>(place.node)].name, place.local_rank}, false});
    life.now.born = number;
}

/// Chooses again without nodes that have gone since the last generation ended, or that preflight has left out.
void choose_again(run_life& life, allocation const& given, run_options const& options) {
    std::set<std::string> there, gone;
    for (auto const& one : given.nodes) there.insert(one.name);
    for (auto const& one : life.pool)
        if (!there.contains(one.host)) gone.insert(one.host);
    bool const whole = std::ranges::all_of(life.now.members, [&](member const& one) { return there.contains(one.at.host); });
    if (whole) return;
    life.lost_hosts.assign(gone.begin(), gone.end());
    auto choice = next_generation(life.pool, life.now, wishes_of(options, life), {.lost_hosts = life.lost_hosts});
    if (choice.next != generation_choice::step::change)
        throw_error(errc::placement, "generation {} cannot begin: {}; ask for --spares N, or allow fewer ranks by --min-np N",
                    life.now.number, choice.why);
    choice.then.number = life.now.number;
    life.now = std::move(choice.then);
}

/// Returns only the generation's nodes, in its order.
allocation nodes_of(generation const& now, allocation given) {
    std::vector<node> ordered;
    std::vector<std::string> taken;
    for (auto const& one : now.members) {
        if (holds(taken, one.at.host)) continue;
        taken.push_back(one.at.host);
        ordered.push_back(*std::ranges::find_if(given.nodes, [&](node const& n) { return n.name == one.at.host; }));
    }
    given.nodes = std::move(ordered);
    return given;
}

/// Maps as many ranks as still fit if a node has lost something (a GPU), provided that they are enough.
mapping map_what_fits(run_options const& options, allocation const& given, placement_request& place) {
    try {
        return map_ranks(given, place);
    } catch (error const& e) {
        if (e.code() != errc::placement || !options.least_ranks) throw;
        auto const wanted = std::exchange(place.ranks, std::nullopt);
        auto const map = map_ranks(given, place);
        if (map.world_size() < *options.least_ranks || map.world_size() > wanted.value_or(0)) throw;
        place.ranks = map.world_size();
        return map;
    }
}

/// Puts the last of the nodes without ranks, as many as are set aside, after the others; processes that wait get their slots.
void add_waiting(run_plan& run, std::vector<node> idle) {
    auto const& life = run.life;
    auto const slots_of = [&](node const& one) {
        return std::ranges::count_if(life.pool, [&](slot const& each) { return each.host == one.name; });
    };
    std::erase_if(idle, [&](node const& one) {
        auto const is_there = [&](auto const& what) { return what.at.host == one.name; };
        return slots_of(one) == 0 || std::ranges::any_of(life.now.members, is_there);
    });
    auto const most = std::min(idle.size(), static_cast<std::size_t>(run.options.waiting_spares()));
    idle.erase(idle.begin(), idle.end() - static_cast<std::ptrdiff_t>(most));
    for (auto const& one : idle) {
        run.given.nodes.push_back(one);
        run.map.ranks_per_node.push_back(0);
        run.waiting.ranks_per_node.resize(run.given.nodes.size(), 0);
        run.waiting.ranks_per_node.back() = static_cast<int>(slots_of(one));
    }
}

/// Fills in what shows whether the ranks made progress since they were started, in place or not.
void judge_progress(run_context const& run, generation_end& end) {
    auto const& life = run.life;
    using signs = progress_signs;
    auto const measures = [](generation_end const& one) { return one.metric_s >= 0; };
    bool const from_outside = run.outcome.from_outside || end.kind == end_kind::node || end.kind == end_kind::other;
    bool const before = std::ranges::any_of(life.ends, measures);
    bool const grew = end.code != 0 && has_grown(run.options.must_grow, life.file_size);
    bool const saved_further =
        end.saved_step >= 0 && std::ranges::all_of(life.ends, [&](auto const& one) { return one.saved_step < end.saved_step; });
    end.advanced = run.options.must_grow.empty() ? saved_further : grew;
    end.standstill = find_standstill({.code = end.code,
                                      .ended = from_outside ? signs::ending::from_outside : signs::ending::by_itself,
                                      .must_grow = run.options.must_grow,
                                      .grew = grew,
                                      .metric = run.outcome.metric_s >= 0 ? signs::measured::now
                                                : before                  ? signs::measured::before
                                                                          : signs::measured::never,
                                      .saved_further = saved_further},
                                     false);
}

generation_end end_of(run_context const& run, int code, double began_s) {
    auto const& outcome = run.outcome;
    auto const& present = run.present();
    double const now = seconds_now();
    double const failed = outcome.failed_s < 0 ? now : outcome.failed_s;
    double const started = outcome.started_s < 0 ? failed : outcome.started_s;
    auto const since_start = [&](double when) { return when < 0 ? -1 : when - started; };
    generation_end end{.number = present.number,
                       .kind = code == 0                                                 ? end_kind::last
                               : outcome.told_of_hosts && code == run.options.saved_code ? end_kind::hosts
                                                                                         : outcome.kind,
                       .code = code,
                       .cause = outcome.cause,
                       .rank = outcome.rank,
                       .host = outcome.host,
                       .lost_hosts = outcome.lost_hosts,
                       .folder = run.options.output_dir,
                       .start_s = outcome.started_s < 0 || outcome.in_place ? -1 : outcome.started_s - began_s,
                       .output_s = since_start(outcome.output_s),
                       .metric_s = since_start(outcome.metric_s),
                       .lived_s = failed - started,
                       .ending_s = now - failed,
                       .at_s = failed,
                       .saved_step = outcome.saved_step,
                       .from_outside = outcome.from_outside};
    for (auto const& one : present.members) end.members.push_back(one.number);
    if (auto const rank = static_cast<std::size_t>(outcome.rank); outcome.rank >= 0 && rank < end.members.size())
        end.member = end.members[rank];
    judge_progress(run, end);
    return end;
}

}  // namespace

void leave_out_lost(allocation& given, run_life const& life) {
    if (life.lost_hosts.empty()) return;
    std::erase_if(given.nodes, [&](node const& one) { return holds(life.lost_hosts, one.name); });
    if (given.nodes.empty()) throw_error(errc::unavailable, "no node is left: lost {}", list_some(life.lost_hosts, "nodes"));
}

run_plan map_generation(run_plan run) {
    auto& life = run.life;
    auto& place = run.options.place;
    life.file_size = measure_growth(run.options.must_grow);
    std::vector<node> idle;
    if (life.is_first()) {
        idle = set_spares_aside(run.given, run.options.spares, place);
        run.map = map_beside(idle, run.options.spares, run.given, place);
        name_members(life, run.given, run.map);
        life.pool = list_slots(run.given, run.map, idle, place);
    } else {
        choose_again(life, run.given, run.options);
        idle = run.given.nodes;
        run.given = nodes_of(life.now, std::move(run.given));
        auto const size = static_cast<int>(life.now.members.size());
        place.ranks = size;
        if (place.nodes) place.nodes = static_cast<int>(run.given.nodes.size());
        if (place.ranks_per_node && size % *place.ranks_per_node != 0) place.ranks_per_node = std::nullopt;
        run.map = map_what_fits(run.options, run.given, place);
        name_members(life, run.given, run.map);
        life.hosts.make_room_for(life.now.members, seconds_now());
    }
    add_waiting(run, std::move(idle));
    return run;
}

namespace {

/// Lets the next launcher choose among the hosts of its time.
void leave_hosts(run_context const& run, generation_follow_up& next, duration delay) {
    auto& last = next.ends.back();
    last.waited_s = delay.count();
    next.again = true;
    next.delay = delay;
    next.life = run.life;
    next.life.ends = next.ends;
    next.life.hosts = run.outcome.hosts;
    next.life.now = run.present();
    ++next.life.now.number;
    note_failures(run, last, draw_chance(), next.life.hosts);
    if (!run.options.quiet)
        print_note(last.kind == end_kind::hosts ? fmt::format("generation {} begins, as hosts come or go", next.life.now.number)
                                                : fmt::format("generation {} begins in {}, if enough slots are left",
                                                              next.life.now.number, format_duration(delay)));
}

}  // namespace

generation_follow_up follow_up(run_context const& run, int code, double began_s) {
    auto const& options = run.options;
    generation_follow_up next;
    next.ends = run.life.ends;
    auto survived = run.outcome.survived;
    if (!survived.empty() && run.outcome.first_started_s >= 0) survived.front().start_s = run.outcome.first_started_s - began_s;
    next.ends.insert(next.ends.end(), survived.begin(), survived.end());
    next.ends.push_back(end_of(run, code, began_s));
    auto const decision = decide_restart(options.restarts, next.ends, draw_chance());
    next.why_not = decision.why;
    if (decision.again && options.discovery.given()) {
        leave_hosts(run, next, decision.delay);
    } else if (decision.again) {
        next.life = run.life;
        auto& lost = next.life.lost_hosts;
        lost.insert(lost.end(), next.ends.back().lost_hosts.begin(), next.ends.back().lost_hosts.end());
        auto choice = next_generation(run.life.pool, run.present(), wishes_of(options, run.life), {.lost_hosts = lost});
        next.again = choice.next == generation_choice::step::change;
        next.delay = decision.delay;
        next.ends.back().waited_s = decision.delay.count();
        next.life.ends = next.ends;
        next.life.now = std::move(choice.then);
        if (!next.again) next.why_not = fmt::format("{}; ask for --spares N, or allow fewer ranks by --min-np N", choice.why);
        if (next.again && !options.quiet)
            print_note("generation {} begins in {} (restart {} of {}){}", next.life.now.number, format_duration(next.delay),
                       without_survived(next.ends).size(), options.restarts.most, choice.why.empty() ? "" : ": " + choice.why);
    }
    if (!next.why_not.empty())
        fmt::print(stderr, "muster: error: no restart after generation {}: {}\n", run.present().number, next.why_not);
    return next;
}

}  // namespace muster
