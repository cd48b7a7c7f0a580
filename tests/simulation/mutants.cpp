#include "mutants.hpp"

#include <fmt/format.h>

#include "launch/elastic/membership.hpp"
#include "launch/elastic/membership_guards.hpp"
#include "simulated_run.hpp"
#include "small_world.hpp"

namespace muster::simulation {

namespace {

/// The first seed that breaks an invariant; 0: none.
std::uint64_t find(std::uint64_t count, std::string& what) {
    for (std::uint64_t seed = 1; seed <= count; ++seed)
        if (auto const end = simulate(draw_schedule(seed)); !end.broken.empty()) return what = end.broken, seed;
    return 0;
}

bool report(std::string const& name, std::uint64_t count) {
    std::string what;
    auto const seed = find(count, what);
    if (seed != 0) return fmt::print("{:60} seed {:6}: {}\n", name, seed, what), true;
    for (bool const over_nodes : {false, true}) {
        std::size_t states = 0;
        what = find_in_small_world(3, 1, over_nodes, states);
        if (!what.empty()) return fmt::print("{:60} small world: {}\n", name, what), true;
    }
    fmt::print("{:60} NOT FOUND by {} schedules and the small world\n", name, count);
    return false;
}

}  // namespace

int run_mutants(std::uint64_t count) {
    int found = 0, all = 0;
    auto const& rows = membership::transitions();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        membership::row_left_out = static_cast<int>(i);
        ++all;
        found += report(fmt::format("row {}: {}, {}", i, name_of(rows[i].from), name_of(rows[i].on)), count);
    }
    membership::row_left_out = -1;
    for (int i = 0; i < static_cast<int>(membership::guard::count_); ++i) {
        membership::guard_turned = i;
        ++all;
        found += report(fmt::format("guard {}: {}", i, name_of(static_cast<membership::guard>(i))), count);
    }
    membership::guard_turned = -1;
    fmt::print("{} of {} mutants are found\n", found, all);
    return found >= 25 ? 0 : 1;
}

}  // namespace muster::simulation
