#include "mutants.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "all_cores.hpp"
#include "launch/elastic/membership.hpp"
#include "launch/elastic/membership_guards.hpp"
#include "launch/keep/machines/keeping_guards.hpp"
#include "simulated_run.hpp"
#include "small_world.hpp"

namespace muster::simulation {

namespace {

/// The first seed that breaks an invariant; 0: none.
std::uint64_t find(schedule (*draw)(std::uint64_t), std::uint64_t count, std::string& what) {
    for (std::uint64_t seed = 1; seed <= count; ++seed)
        if (auto const end = simulate(draw(seed)); !end.broken.empty()) return what = end.broken, seed;
    return 0;
}

struct mutant {
    std::string name;
    int row = -1, guard = -1, kept_guard = -1;
    std::string found = {};  ///< by what; empty: it is not
};

std::vector<mutant> list_mutants() {
    std::vector<mutant> all;
    auto const& rows = membership::transitions();
    for (std::size_t i = 0; i < rows.size(); ++i)
        all.push_back({fmt::format("row {}: {}, {}", i, name_of(rows[i].from), name_of(rows[i].on)), static_cast<int>(i)});
    for (int i = 0; i < static_cast<int>(membership::guard::count_); ++i)
        all.push_back({fmt::format("guard {}: {}", i, name_of(static_cast<membership::guard>(i))), -1, i});
    // generation_loss_test finds the guards of the judge: most schedules name the right rank without one of them, too.
    // No schedule is known that finds "keeps the newest". keeping_test finds the other one: no schedule arranges states for as long as the launcher is patient with a silent leader.
    for (int i = 0; i < static_cast<int>(keeping::guard::count_); ++i)
        if (auto const one = static_cast<keeping::guard>(i);
            one != keeping::guard::says_that_it_is_at_it && one != keeping::guard::keeps_the_newest)
            all.push_back({fmt::format("kept states, guard {}: {}", i, name_of(static_cast<keeping::guard>(i))), -1, -1, i});
    return all;
}

/// Guards of kept states are found by runs that keep them, and nothing else; the others by those, too.
std::string find(mutant const& one, std::uint64_t count) {
    std::string what;
    if (one.kept_guard < 0) {
        if (auto const seed = find(draw_schedule, count, what); seed != 0) return fmt::format("seed {:6}: {}", seed, what);
        for (bool const over_nodes : {false, true}) {
            std::size_t states = 0;
            what = find_in_small_world(3, 1, over_nodes, states);
            if (!what.empty()) return "small world: " + what;
        }
    }
    if (auto const seed = find(draw_kept_schedule, count, what); seed != 0) return fmt::format("kept, seed {:6}: {}", seed, what);
    return {};
}

}  // namespace

int run_mutants(std::uint64_t count) {
    auto all = list_mutants();
    on_all_cores(all.size(), 1, [&](std::uint64_t item, unsigned) {
        auto& one = all[item];
        membership::row_left_out = one.row;
        membership::guard_turned = one.guard;
        keeping::guard_turned = one.kept_guard;
        one.found = find(one, count);
        membership::row_left_out = membership::guard_turned = keeping::guard_turned = -1;
        return true;
    });
    std::size_t found = 0;
    for (auto const& one : all) {
        fmt::print("{:60} {}\n", one.name,
                   one.found.empty() ? fmt::format("NOT FOUND by {} schedules and the small world", count) : one.found);
        found += !one.found.empty();
    }
    fmt::print("{} of {} mutants are found\n", found, all.size());
    return found == all.size() ? 0 : 1;
}

}  // namespace muster::simulation
