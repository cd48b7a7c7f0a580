#include "launch/watch/evidence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/cpuset.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/system/signals.hpp"

namespace muster {

std::string evidence::name_of(rank_evidence const& rank) const {
    if (!rank.is_rank()) return name_of_spare(rank.spare, host_of(rank), rank.gpu_index, rank.gpu_uuid);
    return name_of_rank(rank.shown(), host_of(rank), rank.gpu_index, rank.gpu_uuid,
                        members.empty() ? -1 : members[static_cast<std::size_t>(rank.rank)]);
}

std::string evidence::list(condition const& of) const {
    std::map<std::pair<bool, int>, cpuset> by_node;  // a cpuset prints lists of numbers
    for (auto const& rank : ranks)
        if (of(rank)) by_node[{!rank.is_rank(), rank.node}].cpus.push_back(rank.is_rank() ? rank.shown() : rank.spare);
    std::vector<std::string> words;
    for (auto const& [where, listed] : by_node) {
        if (words.size() == most_named) break;
        words.push_back(fmt::format("{}{} {} on {}", where.first ? "spare" : "rank", listed.cpus.size() == 1 ? "" : "s",
                                    listed.to_list(), hosts[static_cast<std::size_t>(where.second)]));
    }
    return list_some(words, by_node.size(), "nodes");
}

std::string evidence::list(rank_evidence::state now) const {
    return list([now](rank_evidence const& rank) { return rank.now == now; });
}

std::size_t evidence::count(condition const& of) const {
    return static_cast<std::size_t>(std::ranges::count_if(ranks, of));
}

std::size_t evidence::count(rank_evidence::state now) const {
    return count([now](rank_evidence const& rank) { return rank.now == now; });
}

std::size_t evidence::size() const {
    return count([](auto const& r) { return r.is_rank(); });
}

std::size_t evidence::running() const {
    return count([](auto const& r) { return r.running() && r.in_generation(); });
}

std::string evidence::count_running() const {
    auto const spares = count([](auto const& r) { return r.running() && !r.is_rank(); });
    auto const others = count([](auto const& r) { return r.running() && r.is_rank(); });  // including ranks that leave
    std::vector<std::string> parts;
    if (others > 0) parts.push_back(count_of_ranks(others));
    if (spares > 0) parts.push_back(count_of_spares(spares));
    return fmt::format("{}", fmt::join(parts, " and "));
}

bool evidence::any_connected() const {
    return std::ranges::any_of(ranks, [](auto const& r) { return r.connected(); });
}

std::string evidence::ending() const {
    return running() == 0 ? "" : fmt::format("; ending {}", count_of_ranks(running()));
}

std::string evidence::list_early_ends() const {
    std::map<int, std::vector<std::string>> names;  // by exit code
    for (auto const& rank : ranks)
        if (rank.ended_well()) names[shell_code(*rank.wait_status)].push_back(name_of(rank));
    std::vector<std::string> parts;
    for (auto const& [code, list] : names)
        parts.push_back(
            fmt::format("{} had ended with code {} before that",
                        list.size() > most_named ? count_of_ranks(list.size()) : fmt::format("{}", fmt::join(list, ", ")), code));
    return fmt::format("{}", fmt::join(parts, "; "));
}

rank_evidence const* evidence::find_leaver(int other_than) const {
    rank_evidence const* leaver = nullptr;
    std::size_t left = 0, others = 0;
    for (auto const& rank : ranks) {
        if (rank.left_early) {
            ++left;
            if (leaver == nullptr && rank.uses_mpi) leaver = &rank;
        } else if (rank.rank != other_than) {
            ++others;
        }
    }
    return left < others ? leaver : nullptr;
}

void number_anew(evidence& known, std::vector<int> const& members, std::vector<int> const& seats) {
    known.suspect = -1;
    for (auto& rank : known.ranks)
        if (rank.is_rank()) rank.plays = rank_evidence::part::left_out;
    for (std::size_t number = 0; number < seats.size(); ++number) {
        auto& rank = known[seats[number]];
        known.members[static_cast<std::size_t>(rank.rank)] = members[number];
        rank.number = static_cast<int>(number);
        rank.plays = rank_evidence::part::rank;
    }
}

std::vector<rank_row> evidence::rows(std::function<process_sight const*(int rank)> const& sight_of) const {
    using state = rank_evidence::state;
    std::vector<rank_row> rows;
    for (auto const& rank : ranks) {
        if (rank.left_out()) continue;
        rank_row row;
        row.seat = rank.rank;
        row.rank = rank.shown();
        row.spare = rank.is_rank() ? -1 : rank.spare;
        row.waits = rank.plays == rank_evidence::part::waiting;
        row.host = host_of(rank);
        auto const* const sight = sight_of(rank.rank);
        if (sight != nullptr) row.sight = *sight;
        if (rank.wait_status) {
            row.now = rank_row::life::ended;
            row.end = describe_end(*rank.wait_status);
        } else if (rank.now != state::running) {
            row.now = rank_row::life::ended;
            row.end = rank.now == state::absent ? (engine.empty() ? "was not started" : "has not come up")
                      : rank.over()             ? "is lost"
                                                : "waits for ranks that have not come up";
        } else if (sight == nullptr) {
            row.now = rank_row::life::silent;
        }
        if (rank.connected() || rank.number >= 0) row.met = true;  // a generation that goes on in place has met by itself
        rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows, {}, [](auto const& row) { return std::pair(!row.is_rank(), row.rank); });
    infer_meeting(rows);
    return rows;
}

}  // namespace muster
