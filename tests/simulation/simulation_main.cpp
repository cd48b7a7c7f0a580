// simulation: runs the membership of elastic runs through many orders of events. See docs/elastic-protocol.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "all_cores.hpp"
#include "launch/elastic/membership_guards.hpp"
#include "launch/keep/machines/keeping_guards.hpp"
#include "launch/watch/judge_guards.hpp"
#include "mutants.hpp"
#include "simulated_run.hpp"
#include "small_world.hpp"

namespace muster::membership {
constinit thread_local int row_left_out = -1;
constinit thread_local int guard_turned = -1;
}  // namespace muster::membership
namespace muster::keeping {
constinit thread_local int guard_turned = -1;
}  // namespace muster::keeping
namespace muster::judging {
constinit thread_local int guard_turned = -1;
}  // namespace muster::judging

namespace muster::simulation {

namespace {

double seconds_since(std::chrono::steady_clock::time_point then) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

/// Without the faults that do not matter.
schedule shrink(schedule of) {
    auto const what = simulate(of).broken;
    for (std::size_t i = what.empty() ? 0 : of.faults.size(); i-- > 0;) {
        auto fewer = of;
        fewer.faults.erase(fewer.faults.begin() + static_cast<std::ptrdiff_t>(i));
        if (simulate(fewer).broken == what) of = fewer;
    }
    return of;
}

void tell(schedule const& whole) {
    auto const small = shrink(whole);
    std::vector<std::string> story;
    auto const end = simulate(small, &story);
    fmt::print("seed {}: {}\n{} of {} faults matter:\n", whole.seed, describe(small), small.faults.size(), whole.faults.size());
    for (auto const& one : small.faults) fmt::print("  {}\n", describe(one));
    for (auto const& line : story) fmt::print("{}\n", line);
    fmt::print("{}\n", end.broken.empty() ? "all invariants hold" : "BROKEN: " + end.broken);
}

/// Which schedules.
enum class model { members, kept };

schedule draw(model which, std::uint64_t seed) {
    return which == model::kept ? draw_kept_schedule(seed) : draw_schedule(seed);
}

outcome simulate(model which, std::uint64_t seed) {
    return simulate(draw(which, seed));
}

/// The mutant of this thread, for others.
struct mutant_of_thread {
    int row, guard, kept_guard, judges_guard;
};

mutant_of_thread turned_here() {
    return {membership::row_left_out, membership::guard_turned, keeping::guard_turned, judging::guard_turned};
}

void turn(mutant_of_thread const& one) {
    membership::row_left_out = one.row;
    membership::guard_turned = one.guard;
    keeping::guard_turned = one.kept_guard;
    judging::guard_turned = one.judges_guard;
}

/// What the schedules of one core have come to.
struct alignas(64) tally {
    std::uint64_t done = 0, events = 0, generations = 0, gave_up = 0;
    std::uint64_t broken = 0;  ///< the first seed that breaks an invariant; 0: none
};

int run_random(model which, std::uint64_t first, std::uint64_t count) {
    auto const began = std::chrono::steady_clock::now();
    std::vector<tally> all(cores());
    auto const turned = turned_here();
    on_all_cores(count, 256, [&](std::uint64_t item, unsigned core) {
        turn(turned);
        auto& its = all[core];
        auto const end = simulate(which, first + item);
        ++its.done;
        its.events += static_cast<std::uint64_t>(end.events);
        its.generations += static_cast<std::uint64_t>(end.generations);
        its.gave_up += end.gave_up;
        if (end.broken.empty()) return true;
        its.broken = first + item;
        return false;
    });
    tally sum;
    for (auto const& one : all) {
        sum.done += one.done, sum.events += one.events, sum.generations += one.generations, sum.gave_up += one.gave_up;
        if (one.broken != 0 && (sum.broken == 0 || one.broken < sum.broken)) sum.broken = one.broken;
    }
    if (sum.broken != 0) {
        tell(draw(which, sum.broken));
        fmt::print("again: simulation{} --seed {}\n", which == model::kept ? " --kept" : "", sum.broken);
        return 1;
    }
    auto const took = seconds_since(began);
    fmt::print("{} schedules, {} events, {} generations, {} gave up, in {:.1f} s; {:.0f} schedules a second\n", sum.done,
               sum.events, sum.generations, sum.gave_up, took, static_cast<double>(sum.done) / took);
    return 0;
}

int survey(model which, std::uint64_t first, std::uint64_t count) {
    std::map<std::string, std::vector<std::uint64_t>> kinds;
    std::mutex guard;
    auto const turned = turned_here();
    on_all_cores(count, 256, [&](std::uint64_t item, unsigned) {
        turn(turned);
        auto const end = simulate(which, first + item);
        if (end.broken.empty()) return true;
        std::scoped_lock const lock(guard);
        auto kind = end.broken;
        std::replace_if(
            kind.begin(), kind.end(), [](char one) { return one >= '0' && one <= '9'; }, '#');
        kinds[kind].push_back(first + item);
        return true;
    });
    for (auto const& [what, seeds] : kinds)
        fmt::print("{:6} {} (seed {})\n", seeds.size(), what, *std::min_element(seeds.begin(), seeds.end()));
    return kinds.empty() ? 0 : 1;
}

}  // namespace

int main(std::vector<std::string> const& words) {
    auto const number = [&](std::string_view name, std::uint64_t usual) {
        for (std::size_t i = 0; i + 1 < words.size(); ++i)
            if (words[i] == name) return static_cast<std::uint64_t>(std::strtoull(words[i + 1].c_str(), nullptr, 10));
        return usual;
    };
    auto const has = [&](std::string_view name) { return std::find(words.begin(), words.end(), name) != words.end(); };
    membership::row_left_out = static_cast<int>(number("--without-row", static_cast<std::uint64_t>(-1)));
    membership::guard_turned = static_cast<int>(number("--without-guard", static_cast<std::uint64_t>(-1)));
    keeping::guard_turned = static_cast<int>(number("--without-kept-guard", static_cast<std::uint64_t>(-1)));
    judging::guard_turned = static_cast<int>(number("--without-judges-guard", static_cast<std::uint64_t>(-1)));
    auto const which = has("--kept") ? model::kept : model::members;
    if (has("--seed")) return tell(draw(which, number("--seed", 0))), 0;
    if (has("--mutants")) return run_mutants(number("--count", 20'000));
    if (has("--small-world"))
        return run_small_world(static_cast<int>(number("--ranks", 3)), static_cast<int>(number("--faults", 1)));
    if (has("--survey")) return survey(which, number("--first", 1), number("--count", 100'000));
    return run_random(which, number("--first", 1), number("--count", 200'000));
}

}  // namespace muster::simulation

int main(int argc, char** argv) {
    return muster::simulation::main({argv + 1, argv + argc});
}
