#include "launch/run/gather_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/command/print_note.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/elastic/host_answers.hpp"
#include "launch/run/prepare_run.hpp"

namespace muster {

namespace {

constexpr duration ask_again{1};

/// Returns how many slots the next generation needs.
int least_members(run_options const& options, run_life const& life) {
    auto const& asked = options.place.ranks;
    if (life.is_first()) return asked ? *asked : options.least_ranks.value_or(1);
    auto const& least = options.least_ranks ? options.least_ranks : asked;
    return least.value_or(static_cast<int>(life.ends.front().members.size()));
}

/// Returns the generation, with the number of the present one, if there are enough slots for it.
std::optional<generation> choose_generation(run_options const& options, run_life const& life, double now_s) {
    auto const usable = life.hosts.usable(now_s);
    int const least = least_members(options, life);
    if (life.is_first()) {
        if (static_cast<int>(usable.size()) < least) return std::nullopt;
        auto const count = std::min(usable.size(), static_cast<std::size_t>(most_members(options, life)));
        generation first;
        for (std::size_t i = 0; i < count; ++i) first.members.push_back({first.born++, usable[i], false});
        return first;
    }
    auto choice =
        next_generation(life.hosts.all(), life.now, {.least = least, .most = most_members(options, life), .restart = true},
                        lost_in_pool(life.hosts, life.now.members, now_s));
    if (choice.next != generation_choice::step::change) return std::nullopt;
    choice.then.number = life.now.number;
    return choice.then;
}

/// Asks the script once.
void ask(discovery_script const& script, environment const& variables, host_pool& hosts, script_state& state) {
    auto const answer = ask_hosts(script, variables);
    auto const news = take(state, hosts, answer);
    if (news == host_news::useless)
        throw_error(errc::config, "--host-discovery-script {} {}", script.command, answer.fault_with("; try it by itself"));
    if (news == host_news::fault) print_note("--host-discovery-script " + answer.fault_with("; it is asked again"));
}

allocation hosts_of(std::vector<member> const& members) {
    allocation given{.scheduler = scheduler_kind::hostfile};
    std::unordered_map<std::string_view, std::size_t> places;
    for (auto const& one : members) {
        auto const [known, is_new] = places.try_emplace(one.at.host, given.nodes.size());
        if (is_new) given.nodes.push_back({one.at.host, one.at.host, 0, std::nullopt, std::nullopt});
        ++given.nodes[known->second].slots;
    }
    return given;
}

}  // namespace

int most_members(run_options const& options, run_life const& life) {
    int const at_start =
        life.ends.empty() ? static_cast<int>(life.now.members.size()) : static_cast<int>(life.ends.front().members.size());
    if (options.most_ranks) return *options.most_ranks;
    if (options.place.ranks && life.is_first()) return *options.place.ranks;
    return at_start > 0 ? at_start : 1'000'000;
}

gathered_hosts gather_hosts(run_options const& options, environment const& variables, run_life life) {
    auto script = life.is_first() ? script_state::unasked : script_state::answers;
    bool said = false;
    for (double const began_s = seconds_now();;) {
        ask(options.discovery, variables, life.hosts, script);
        double const now = seconds_now();
        if (auto chosen = choose_generation(options, life, now)) {
            auto given = hosts_of(chosen->members);
            if (life.is_first()) return {std::move(given), std::move(life), static_cast<int>(chosen->members.size())};
            life.now = std::move(*chosen);
            return {std::move(given), std::move(life), std::nullopt};
        }
        auto const lack = fmt::format("{} needed, {} usable; {}", counted(least_members(options, life), "slot"),
                                      life.hosts.usable(now).size(), life.hosts.describe(now));
        auto const& limit = options.elastic_timeout;
        if (limit && now - began_s >= limit->count())
            throw_error(errc::timeout, "waited for hosts for {} (--elastic-timeout): {}", format_duration(*limit), lack);
        if (!std::exchange(said, true) && !options.quiet)
            print_note(limit ? fmt::format("waiting for hosts, {} at most (--elastic-timeout): {}", format_duration(*limit), lack)
                             : fmt::format("waiting for hosts: {}", lack));
        if (options.timeout && life.age() >= *options.timeout)
            throw_error(errc::timeout, "waited for hosts until {} had passed (--timeout): {}", format_duration(*options.timeout),
                        lack);
        std::this_thread::sleep_for(std::min(ask_again, limit.value_or(ask_again)));
    }
}

cool_down_range cool_down_of_hosts(run_options const& options) {
    auto range = options.cool_down;
    range.least_s = std::max(range.least_s, options.lost_after().count());
    return range;
}

void note_failures(run_context const& run, generation_end const& end, double chance, host_pool& hosts) {
    double const now = seconds_now();
    for (auto const& host : end.lost_hosts) hosts.note_lost(host, cool_down_of_hosts(run.options), now, chance);
    auto const rank = static_cast<std::size_t>(std::max(end.rank, 0));
    auto const& members = run.present().members;
    if (end.kind == end_kind::rank && end.rank >= 0 && rank < members.size())
        hosts.note_failure(members[rank].at, run.options.cool_down, now, chance);
}

}  // namespace muster
