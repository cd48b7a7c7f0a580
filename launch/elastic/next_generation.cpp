#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"
#include "launch/elastic/generation.hpp"
#include "launch/elastic/slot_set.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

template <typename T>
bool holds(std::vector<T> const& all, T const& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

/// Holds the slots that cannot be used, or are given back.
struct slots_of_events {
    explicit slots_of_events(generation_events const& events)
        : lost_hosts(events.lost_hosts.begin(), events.lost_hosts.end()), lost(events.lost_slots), leaving(events.leaving) {}
    std::unordered_set<std::string_view> lost_hosts;
    slot_set lost;
    slot_set leaving;
    bool is_lost(slot const& at) const { return (!lost_hosts.empty() && lost_hosts.contains(at.host)) || lost.contains(at); }
};

/// Returns usable slots of the pool without a member, in the pool's order.
std::vector<slot> free_slots(std::vector<slot> const& pool, std::vector<member> const& members, slots_of_events const& gone) {
    std::vector<slot> idle;
    slot_set const taken(members);
    for (auto const& one : pool)
        if (!taken.contains(one) && !gone.is_lost(one) && !gone.leaving.contains(one)) idle.push_back(one);
    return idle;
}

/// Moves the first member that has the state to the front; the others keep their order.
void put_state_first(std::vector<member>& members) {
    auto const first = std::find_if(members.begin(), members.end(), [](member const& m) { return m.has_state; });
    if (first != members.end()) std::rotate(members.begin(), first, first + 1);
}

/// Puts the slots of one host next to each other, with the hosts in the order in which they first appear.
void group_by_host(std::vector<member>& members) {
    std::unordered_map<std::string, std::size_t> places;
    for (auto const& one : members) places.try_emplace(one.at.host, places.size());
    auto const place = [&](member const& one) { return places.at(one.at.host); };
    std::stable_sort(members.begin(), members.end(), [&](auto const& a, auto const& b) { return place(a) < place(b); });
}

/// Returns a member's place among those of its generation.
std::ptrdiff_t rank_of(member const& one, generation const& in) {
    auto const found = std::ranges::find(in.members, one.number, &member::number);
    return found - in.members.begin();
}

void begin_anew(generation& next) {
    group_by_host(next.members);
    for (auto& one : next.members) one = {next.born++, one.at, false};
}

/// Returns a host's name as other messages, which get it from the host itself, write it: "n1" for "n1.lab.example"; an address
/// stays whole.
std::string_view called(std::string_view host) {
    return host.find_first_not_of("0123456789.") == std::string_view::npos ? host : short_name(host);
}

/// Returns "rank 3 on node2 is gone, 2 come in on node4"; ranks are those of `now`.
std::string describe_change(generation const& now, std::vector<member> const& left, std::vector<slot> const& came) {
    std::vector<std::string> parts;
    std::vector<std::string_view> hosts;
    std::unordered_set<std::string_view> seen;
    auto const add = [&](slot const& at) {
        if (auto const host = called(at.host); seen.insert(host).second) hosts.push_back(host);
    };
    for (auto const& one : left) add(one.at);
    if (left.size() == 1)
        parts.push_back(fmt::format("rank {} on {} is gone", rank_of(left.front(), now), hosts.front()));
    else if (!left.empty())
        parts.push_back(fmt::format("{} ranks on {} are gone", left.size(), fmt::join(hosts, ", ")));
    hosts.clear(), seen.clear();
    for (auto const& one : came) add(one);
    if (!came.empty())
        parts.push_back(fmt::format("{} {} in on {}", came.size(), came.size() == 1 ? "comes" : "come", fmt::join(hosts, ", ")));
    return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

generation_choice next_generation(std::vector<slot> const& pool, generation const& now, generation_wishes const& wanted,
                                  generation_events const& events) {
    std::vector<member> stay, left, leaving;
    slots_of_events const slots(events);
    for (auto const& one : now.members) {
        bool const gone = slots.is_lost(one.at) || (!wanted.restart && holds(events.ended, one.number));
        (gone ? left : slots.leaving.contains(one.at) ? leaving : stay).push_back(one);
    }
    bool const grows = wanted.restart || events.at_commit;
    auto const target = std::max(now.members.size(), grows ? static_cast<std::size_t>(std::max(wanted.most, 0)) : 0);
    auto const free = free_slots(pool, now.members, slots).size();
    // If members that should leave have to stay, those with the state come first.
    std::stable_partition(leaving.begin(), leaving.end(), [](member const& one) { return one.has_state; });
    bool const anyone_has_state = std::any_of(stay.begin(), stay.end(), [](member const& one) { return one.has_state; });
    std::size_t kept = !leaving.empty() && leaving.front().has_state && !anyone_has_state ? 1 : 0;
    auto const least = static_cast<std::size_t>(std::max(wanted.least, 1));
    while (kept < leaving.size() && stay.size() + kept + free < least) ++kept;
    left.insert(left.end(), leaving.begin() + static_cast<std::ptrdiff_t>(kept), leaving.end());
    if (kept > 0) {
        stay = now.members;
        std::erase_if(stay, [&](member const& one) { return holds(left, one); });
    }
    auto came = free_slots(pool, stay, slots);
    if (came.size() + stay.size() > target) came.resize(target - stay.size());
    if (!wanted.restart && left.empty() && came.empty()) return {};
    auto const size = stay.size() + came.size();
    auto why = describe_change(now, left, came);
    bool const too_few = size < least;
    if ((wanted.restart || too_few) && size != now.members.size())  // in place, the launcher reports how many go on
        why += fmt::format("; {} instead of {}", counted(static_cast<std::int64_t>(size), "rank"), now.members.size());
    if (too_few) return {generation_choice::step::wait, {}, fmt::format("{}: {} needed", why, wanted.least)};
    generation next{now.number + 1, std::move(stay), now.born};
    if (!wanted.restart) put_state_first(next.members);
    for (auto const& at : came) next.members.push_back({wanted.restart ? 0 : next.born++, at, false});
    if (wanted.restart) begin_anew(next);
    return {generation_choice::step::change, std::move(next), std::move(why)};
}

}  // namespace muster
