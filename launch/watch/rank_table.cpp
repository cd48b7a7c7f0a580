#include "launch/watch/rank_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/cpuset.hpp"
#include "base/process/this_process.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

constexpr std::size_t most_hosts = 4;

std::string describe_meeting(rank_row const& row) {
    if (!row.is_rank()) return row.waits ? "; waits for the place of a lost rank" : "; has not come to init()";
    if (!row.met) return {};
    return *row.met ? "; has met the others" : "; has not met the others";
}

/// Returns the text by which two ranks count as alike.
std::string state_of(rank_row const& row) {
    if (row.now == rank_row::life::ended) return row.end;
    if (row.now == rank_row::life::silent) return "its watcher does not answer";
    return describe_state(row.sight) + (row.sight.traceback ? ", has printed a traceback" : "");
}

/// Returns "" for an old look without output, since the rank may have written since.
std::string describe_output(rank_row const& row) {
    auto const& sight = row.sight;
    if (sight.silent_s < 0) return row.age_s > 0 ? "" : "no output seen";
    return fmt::format("wrote last {} ago: {}", format_duration(duration(sight.silent_s)), sight.last_line);
}

std::string describe_one(rank_row const& row) {
    auto const name = row.is_rank() ? name_of_rank(row.rank, row.host, -1, "") : name_of_spare(row.spare, row.host);
    if (row.now != rank_row::life::running) return fmt::format("{}: {}", name, state_of(row));
    auto const& sight = row.sight;
    auto const output = describe_output(row);
    return fmt::format("{}, pid {}: {}, {:.1f} s of CPU{}{}{}{}", name, sight.pid, state_of(row), sight.cpu_s,
                       describe_meeting(row), output.empty() ? "" : "; ", output,
                       row.age_s > 0 ? fmt::format("; seen {} before", format_duration(duration(std::round(row.age_s)))) : "");
}

using group = std::vector<rank_row const*>;

std::vector<group> group_rows(std::vector<rank_row> const& rows) {
    std::map<std::string, group> by_state;
    for (auto const& row : rows)
        if (row.is_rank()) by_state[state_of(row) + describe_meeting(row)].push_back(&row);
    std::vector<group> groups;
    for (auto& [state, members] : by_state) groups.push_back(std::move(members));
    std::ranges::stable_sort(groups, [](group const& a, group const& b) {
        return std::pair(a.size(), a.front()->rank) < std::pair(b.size(), b.front()->rank);
    });
    return groups;
}

/// Returns "node1, node2, node3, node4 and 12 more".
std::string list_hosts(group const& members) {
    std::vector<std::string> hosts;
    for (auto const* row : members)
        if (std::ranges::find(hosts, row->host) == hosts.end()) hosts.push_back(row->host);
    auto const shown = std::min(most_hosts, hosts.size());
    auto text = fmt::format("{}", fmt::join(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (hosts.size() > shown) text += fmt::format(" and {} more", hosts.size() - shown);
    return text;
}

std::string describe_group(group const& members) {
    auto const& first = *members.front();
    if (members.size() == 1) return describe_one(first);
    cpuset ranks;  // a cpuset prints lists of numbers
    for (auto const* row : members) ranks.cpus.push_back(row->rank);
    auto const name = fmt::format("{} (ranks {}) on {}", count_of_ranks(members.size()), ranks.to_list(), list_hosts(members));
    if (first.now != rank_row::life::running) return fmt::format("{}: {}", name, state_of(first));
    auto const [least, most] = std::minmax_element(members.begin(), members.end(),
                                                   [](auto const* a, auto const* b) { return a->sight.cpu_s < b->sight.cpu_s; });
    auto const output = describe_output(first);
    return fmt::format("{}: {}, {:.1f} to {:.1f} s of CPU{}{}", name, state_of(first), (*least)->sight.cpu_s,
                       (*most)->sight.cpu_s, describe_meeting(first),
                       output.empty() ? "" : fmt::format("; of rank {} (pid {}): {}", first.rank, first.sight.pid, output));
}

/// Returns whether a sleeping rank has just woken: a signal that ends it lets it run first.
bool has_just_woken(process_sight const& now, process_sight const& before) {
    return now.state == 'R' && before.state != 'R' && now.cpu_s - before.cpu_s < 0.1;
}

}  // namespace

std::vector<std::string> describe_ranks(std::vector<rank_row> const& rows) {
    std::vector<std::string> lines;
    bool const each = rows.size() <= most_single_rows;
    if (!each)
        for (auto const& members : group_rows(rows)) lines.push_back(describe_group(members));
    for (auto const& row : rows)
        if (each || !row.is_rank()) lines.push_back(describe_one(row));
    return lines;
}

std::string describe_states(std::vector<rank_row> const& rows) {
    std::string text;
    for (auto const& row : rows)
        text += fmt::format("{} {} {}: {}{}\n", row.rank, row.spare, row.host, state_of(row), describe_meeting(row));
    return text;
}

std::vector<std::string> said_tables::describe(std::vector<rank_row> const& rows, bool may_refer) {
    auto const now = std::chrono::steady_clock::now();
    auto table = describe_states(rows);
    if (may_refer && rows.size() > 1 && table == last_)
        return {fmt::format("all ranks do what the table above shows, {} later", format_duration(now - at_))};
    last_ = std::move(table);
    at_ = now;
    return describe_ranks(rows);
}

std::vector<rank_row> with_last_seen(std::vector<rank_row> rows, std::vector<rank_row> const& before, double age_s) {
    std::vector<rank_row> shown;
    bool any_seen = false;
    for (auto& row : rows) {
        auto const same = std::ranges::find(before, row.seat, &rank_row::seat);
        auto const* const earlier = same != before.end() ? &*same : nullptr;
        bool const seen = row.is_seen();
        if (earlier != nullptr && earlier->is_seen() && !(seen && !has_just_woken(row.sight, earlier->sight))) {
            shown.push_back(*earlier);
            shown.back().rank = row.rank, shown.back().spare = row.spare;
            shown.back().age_s = std::max(age_s, 1.0);
        } else if (seen) {
            shown.push_back(std::move(row));
            shown.back().now = rank_row::life::running;
        } else if (row.now == rank_row::life::silent || (earlier != nullptr && earlier->now == rank_row::life::ended)) {
            shown.push_back(std::move(row));
            continue;
        } else {
            continue;
        }
        any_seen = true;
    }
    if (!any_seen) shown.clear();
    return shown;
}

signal_reach find_reach(int signal_number, bool to_handlers_only, std::vector<rank_row> const& rows) {
    auto const name = fmt::format("SIG{}", signal_name(signal_number));
    cpuset without;  // a cpuset prints lists of numbers
    std::size_t running = 0;
    for (auto const& row : rows) {
        if (!row.is_rank() || (row.now == rank_row::life::ended && !row.is_seen())) continue;
        ++running;  // when it was inspected: the signal may have ended it since
        if (to_handlers_only && row.is_seen() && !holds_signal(row.sight.caught, signal_number)) without.cpus.push_back(row.rank);
    }
    auto const reached = running - without.cpus.size();
    if (without.cpus.empty()) return {reached, fmt::format("{} to {}", name, count_of_ranks(running))};
    if (reached == 0) return {0, fmt::format("no rank handles {}: nothing sent", name)};
    bool const one = without.cpus.size() == 1;
    return {reached, fmt::format("{} to {} of {}: rank{} {} {} no handler for it", name, reached, count_of_ranks(running),
                                 one ? "" : "s", without.to_list(), one ? "has" : "have")};
}

std::vector<int> choose_examples(std::vector<rank_row> const& rows) {
    std::vector<int> chosen;
    auto const add = [&](rank_row const& row) {
        if (row.now == rank_row::life::running && row.is_rank()) chosen.push_back(row.seat);
    };
    if (rows.size() <= most_single_rows)
        for (auto const& row : rows) add(row);
    else
        for (auto const& members : group_rows(rows)) add(*members.front());
    return chosen;
}

void infer_meeting(std::vector<rank_row>& rows) {
    auto const met = [](rank_row const& row) { return row.met.value_or(false) || row.sight.at_port; };
    bool const any = std::ranges::any_of(rows, met);
    for (auto& row : rows)
        if (row.now == rank_row::life::running && row.is_rank()) row.met = any ? std::optional(met(row)) : std::nullopt;
}

std::vector<rank_row> find_unmet(std::vector<rank_row> rows, std::vector<rank_row> const* before) {
    std::erase_if(rows, [before](rank_row const& row) {
        bool const has_ended = row.now != rank_row::life::running || row.sight.state == 'Z' || row.sight.state == 'X';
        auto const is_same = [&row](rank_row const& other) { return other.seat == row.seat; };
        return has_ended || row.met != false || (before != nullptr && std::none_of(before->begin(), before->end(), is_same));
    });
    return rows;
}

}  // namespace muster
