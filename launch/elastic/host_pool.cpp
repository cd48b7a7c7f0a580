#include "launch/elastic/host_pool.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "launch/elastic/slot_set.hpp"

namespace muster {

namespace {

auto find_host(auto& hosts, std::string_view name) {
    return std::find_if(hosts.begin(), hosts.end(), [&](pool_host const& one) { return one.name == name; });
}

/// Makes the slot cool down, from now on or for longer.
void cool(std::vector<host_pool::cool_down>& cooling, slot const& at, cool_down_range const& range, double now_s, double chance) {
    auto row = std::find_if(cooling.begin(), cooling.end(), [&](auto const& one) { return one.at == at; });
    if (row == cooling.end()) row = cooling.insert(cooling.end(), {.at = at});
    if (now_s > row->until_s + range.most_s) row->failures = 0;
    double const doubled = range.least_s * std::exp2(std::min(row->failures, 40)) + std::clamp(chance, 0.0, 1.0) * range.least_s;
    row->until_s = now_s + std::clamp(doubled, range.least_s, std::max(range.least_s, range.most_s));
    ++row->failures;
}

}  // namespace

// The script may name 50,000 hosts every second, so the following code never searches all hosts for each host.

bool host_pool::take(std::vector<pool_host> const& found) {
    auto const before = std::exchange(hosts, {});
    std::unordered_map<std::string_view, pool_host const*> there;
    for (auto const& one : found) there[one.name] = &one;  // the last entry of a name counts
    auto const keep = [&](pool_host const& one) {
        auto const its = there.find(one.name);
        if (its == there.end()) return;
        hosts.push_back(*its->second);
        there.erase(its);
    };
    for (auto const& one : before) keep(one);
    for (auto const& one : found) keep(one);
    return hosts != before;
}

void host_pool::note_failure(slot const& at, cool_down_range const& range, double now_s, double chance) {
    cool(cooling, at, range, now_s, chance);
    auto const host = find_host(hosts, at.host);
    if (host == hosts.end()) return;
    for (int i = 0; i < host->slots; ++i)
        if (!is_cooling({at.host, i}, now_s)) return;
    if (host->slots > 1) note_lost(at.host, range, now_s, chance);
}

void host_pool::note_lost(std::string const& host, cool_down_range const& range, double now_s, double chance) {
    cool(cooling, {host, whole_host}, range, now_s, chance);
}

void host_pool::make_room_for(std::vector<member> const& members, double now_s) {
    auto const has_member = [&](slot const& at) {
        return std::any_of(members.begin(), members.end(), [&](member const& one) { return one.at == at; });
    };
    for (auto& row : cooling) {
        auto const host = find_host(hosts, row.at.host);
        if (row.until_s <= now_s || host == hosts.end() || !has_member(row.at)) continue;
        for (slot at{row.at.host, host->slots - 1}; at.index >= 0; --at.index) {
            auto const other = std::find_if(cooling.begin(), cooling.end(), [&](auto const& one) { return one.at == at; });
            if (has_member(at) || (other != cooling.end() && other->until_s > now_s)) continue;
            if (other != cooling.end()) other->at = row.at;
            row.at = at;
            break;
        }
    }
}

double host_pool::time_left(slot const& at, double now_s) const {
    double left = 0;
    for (auto const& one : cooling)
        if (one.at.host == at.host && (one.at.index == at.index || one.at.index == whole_host))
            left = std::max(left, one.until_s - now_s);
    return left;
}

bool host_pool::is_cooling(slot const& at, double now_s) const {
    return time_left(at, now_s) > 0;
}

std::vector<slot> host_pool::all() const {
    std::vector<slot> slots;
    for (auto const& host : hosts)
        for (int i = 0; i < host.slots; ++i) slots.push_back({host.name, i});
    return slots;
}

std::vector<slot> host_pool::usable(double now_s) const {
    slot_set idle;
    for (auto const& one : cooling)
        if (one.until_s > now_s) idle.add(one.at);
    auto slots = all();
    if (!idle.empty())
        std::erase_if(slots, [&](slot const& one) { return idle.contains(one) || idle.contains({one.host, whole_host}); });
    return slots;
}

std::optional<double> host_pool::next_free_s(double now_s) const {
    std::optional<double> next;
    std::unordered_set<std::string_view> there;
    for (auto const& one : hosts) there.insert(one.name);
    for (auto const& one : cooling) {
        if (one.until_s <= now_s || !there.contains(one.at.host)) continue;
        next = std::min(next.value_or(one.until_s), one.until_s);
    }
    return next;
}

generation_events lost_in_pool(host_pool const& pool, std::vector<member> const& members, double now_s) {
    generation_events events;
    slot_set const usable(pool.usable(now_s));
    auto const add = [&](slot const& at) {
        if (!usable.contains(at)) events.lost_slots.push_back(at);
    };
    for (auto const& one : members) add(one.at);
    for (auto const& one : pool.all()) add(one);
    return events;
}

host_change find_host_change(host_pool const& pool, std::vector<member> const& members, std::vector<slot> const& coming,
                             std::vector<slot> const& busy, int most, double now_s) {
    host_change change;
    slot_set const all(pool.all());
    slot_set taken(busy);
    auto left = static_cast<std::ptrdiff_t>(most);
    for (auto const& one : members) {
        taken.add(one.at);
        if (all.contains(one.at))
            --left;
        else
            change.leave.push_back(one.at);
    }
    for (auto const& at : coming) {
        taken.add(at);
        if (all.contains(at) && left > 0)
            --left;
        else
            change.end.push_back(at);
    }
    for (auto const& at : pool.usable(now_s))
        if (left > 0 && !taken.contains(at)) change.start.push_back(at), --left;
    return change;
}

std::string find_host_news(host_pool const& pool, std::vector<member> const& members, int most, double now_s) {
    std::vector<std::string> parts;
    slot_set const all(pool.all());
    auto const gone = std::count_if(members.begin(), members.end(), [&](member const& one) { return !all.contains(one.at); });
    if (gone > 0) parts.push_back(fmt::format("{} of the slots in use {} gone", gone, gone == 1 ? "is" : "are"));
    auto free = pool.usable(now_s);
    slot_set const in_use(members);
    std::erase_if(free, [&](slot const& at) { return in_use.contains(at); });
    auto const room = static_cast<std::ptrdiff_t>(most) - (static_cast<std::ptrdiff_t>(members.size()) - gone);
    if (auto const more = std::min(static_cast<std::ptrdiff_t>(free.size()), room); more > 0)
        parts.push_back(counted(more, "more slot") + " can be used");
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string host_pool::describe(double now_s) const {
    std::vector<std::string> parts;
    for (auto const& host : hosts) {
        int usable = 0;
        double last = now_s;
        for (int i = 0; i < host.slots; ++i) usable += is_cooling({host.name, i}, now_s) ? 0 : 1;
        for (auto const& one : cooling)
            if (one.at.host == host.name) last = std::max(last, one.until_s);
        auto const count = counted(host.slots, "slot");
        parts.push_back(usable == host.slots ? fmt::format("{}: {}", host.name, count)
                                             : fmt::format("{}: {} of {} (after failures there, the rest in {} at most)",
                                                           host.name, usable, count, format_duration(duration(last - now_s))));
    }
    return parts.empty() ? "no host" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace muster
