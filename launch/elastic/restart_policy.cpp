#include "launch/elastic/restart_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace muster {

namespace {

constexpr duration shortest_delay{0.2};
constexpr duration longest_delay{30};
constexpr double long_life_s = 60;  ///< a generation that lives this long resets the delays
constexpr double alike_within_s = 60;
constexpr std::size_t most_alike = 3;
constexpr std::size_t most_idle = 2;  ///< generations in a row without progress

bool is_wanted(restart_policy const& policy, generation_end const& end) {
    if ((policy.codes.empty() && !policy.on_node) || end.kind == end_kind::hosts) return true;
    if (policy.on_node && end.kind == end_kind::node) return true;
    return end.kind != end_kind::node && std::find(policy.codes.begin(), policy.codes.end(), end.code) != policy.codes.end();
}

bool are_alike(std::span<generation_end const> ends) {
    if (ends.size() < most_alike) return false;
    auto const last = ends.last(most_alike);
    return last.back().at_s - last.front().at_s <= alike_within_s &&
           std::all_of(last.begin(), last.end(), [&](generation_end const& one) {
               return one.kind == last.back().kind && one.code == last.back().code && !one.from_outside && !one.advanced;
           });
}

bool are_idle(std::span<generation_end const> ends) {
    if (ends.size() < most_idle) return false;
    auto const last = ends.last(most_idle);
    return std::all_of(last.begin(), last.end(), [](generation_end const& one) { return !one.standstill.empty(); });
}

duration delay_after(std::span<generation_end const> ends, double chance) {
    auto const long_lived =
        std::find_if(ends.rbegin(), ends.rend(), [](generation_end const& one) { return one.lived_s >= long_life_s; });
    auto const short_lives = std::max<std::ptrdiff_t>(long_lived - ends.rbegin(), 1);
    auto const doubled = shortest_delay.count() * std::exp2(std::min<std::ptrdiff_t>(short_lives - 1, 20));
    return duration(std::min(doubled, longest_delay.count()) * (0.75 + 0.5 * std::clamp(chance, 0.0, 1.0)));
}

}  // namespace

std::string_view to_string(end_kind kind) noexcept {
    switch (kind) {
        case end_kind::last: return "last";
        case end_kind::rank: return "rank";
        case end_kind::node: return "node";
        case end_kind::hosts: return "hosts";
        case end_kind::other: return "other";
    }
    return "?";
}

std::vector<generation_end> without_survived(std::span<generation_end const> ends) {
    std::vector<generation_end> whole;
    std::copy_if(ends.begin(), ends.end(), std::back_inserter(whole), [](generation_end const& one) { return !one.in_place; });
    return whole;
}

restart_decision decide_restart(restart_policy const& policy, std::span<generation_end const> all_ends, double chance) {
    auto const ends = without_survived(all_ends);
    if (ends.empty() || ends.back().kind == end_kind::last) return {};
    auto const& last = ends.back();
    if (policy.most == 0 && last.kind != end_kind::hosts) return {};
    if (policy.resets && all_ends.size() > static_cast<std::size_t>(std::max(*policy.resets, 0)))
        return {.why = fmt::format("this was restart {} of {} (--reset-limit)", all_ends.size() - 1, *policy.resets)};
    if (last.kind == end_kind::hosts) return {.again = true};
    auto const restarts =
        std::count_if(ends.begin(), ends.end() - 1, [](auto const& one) { return one.kind != end_kind::hosts; });
    if (!is_wanted(policy, last))
        return {.why = last.kind == end_kind::node ? "--restart-on does not name node"
                                                   : fmt::format("--restart-on does not name exit code {}", last.code)};
    if (restarts >= policy.most) return {.why = fmt::format("this was restart {} of {} (--max-restarts)", restarts, policy.most)};
    if (are_idle(ends))
        return {.why = fmt::format("generations {} and {} came no further: {}", ends[ends.size() - 2].number, last.number,
                                   last.standstill)};
    if (are_alike(ends))
        return {.why = fmt::format("{} failures alike within {} (exit code {}): another start would end the same way", most_alike,
                                   format_duration(duration(last.at_s - ends[ends.size() - most_alike].at_s)), last.code)};
    return {.again = true, .delay = delay_after(ends, chance)};
}

}  // namespace muster
