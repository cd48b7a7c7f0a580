#include "base/trace/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/trace/rank_file.hpp"

namespace muster {

namespace {

/// The last operation of a rank in one process set.
struct position {
    std::uint64_t sequence = 0;
    std::string kind;
    std::string name;
    bool finished = false;
};

std::string spell(position const& at) {
    return fmt::format("{} #{}{}{}", at.kind, at.sequence, at.name.empty() ? "" : fmt::format(" \"{}\"", at.name),
                       at.finished ? " (finished)" : "");
}

std::string who(std::vector<flight_dump const*> const& dumps) {
    std::vector<std::string> names;
    for (auto const* each : dumps) names.push_back(fmt::format("{} ({})", each->rank, each->host));
    return fmt::format("rank{} {}", dumps.size() == 1 ? "" : "s", join(names, ", "));
}

using place = std::pair<std::uint64_t, bool>;

/// Explains the groups of ranks at the same place of one process set, the earliest first.
std::string explain_set(int set, std::map<place, std::pair<position, std::vector<flight_dump const*>>> const& groups) {
    std::string const of = set == 0 ? std::string{} : fmt::format("process set {}: ", set);
    if (groups.size() == 1) {
        auto const& [at, ranks] = groups.begin()->second;
        return fmt::format("{}all {} rank(s) that left a file are at {}\n", of, ranks.size(), spell(at));
    }
    auto const most = std::ranges::max_element(
        groups, [](auto const& a, auto const& b) { return a.second.second.size() <= b.second.second.size(); });
    std::string text;
    for (auto one = groups.begin(); one != groups.end(); ++one) {
        if (one == most) continue;
        text += fmt::format("{}{} {} at {}, ", of, who(one->second.second), one->second.second.size() == 1 ? "is" : "are",
                            spell(one->second.first));
    }
    return text + fmt::format("{} at {}\n", groups.size() == 2 ? "all others" : "the rest", spell(most->second.first));
}

std::string explain_reasons(std::span<flight_dump const> dumps) {
    std::map<std::vector<int>, std::vector<flight_dump const*>> by_culprits;
    for (auto const& each : dumps)
        if (!each.reason.empty()) by_culprits[each.culprits].push_back(&each);
    std::string text;
    for (auto const& [culprits, ranks] : by_culprits) {
        std::vector<std::string> names;
        for (int const rank : culprits) names.push_back(std::to_string(rank));
        text += fmt::format("{} {}: {}\n", who(ranks),
                            culprits.empty() ? "could not name a culprit"
                                             : fmt::format("blame{} rank {}", ranks.size() == 1 ? "s" : "", join(names, ", ")),
                            ranks.front()->reason);
    }
    return text;
}

std::string explain_generation(std::span<flight_dump const> dumps) {
    int ranks = 0;
    std::set<int> present;
    std::map<int, std::map<place, std::pair<position, std::vector<flight_dump const*>>>> sets;
    for (auto const& dump : dumps) {
        ranks = std::max(ranks, dump.ranks);
        present.insert(dump.rank);
        std::map<int, flight_record const*> last;
        for (auto const& each : dump.records) {
            // Operations are recorded in the order in which they begin; the rank is at the first unfinished one.
            auto& at = last[each.set];
            if (at == nullptr || at->finished_us != 0) at = &each;
        }
        for (auto const& [set, at] : last) {
            auto& group = sets[set][{at->sequence, at->finished_us != 0}];
            group.first = {at->sequence, at->kind, at->name, at->finished_us != 0};
            group.second.push_back(&dump);
        }
    }
    std::string text;
    for (auto const& [set, groups] : sets) text += explain_set(set, groups);
    std::vector<std::string> missing;
    for (int rank = 0; rank < std::min(ranks, 1 << 20); ++rank)
        if (!present.contains(rank) && missing.size() < 100) missing.push_back(std::to_string(rank));
    if (!missing.empty())
        text += fmt::format("rank{} {} left no file: killed, stopped, or not failed\n", missing.size() == 1 ? "" : "s",
                            join(missing, ", "));
    for (auto const& dump : dumps)
        if (!dump.waiting.empty())
            text += fmt::format("rank {} ({}) waits for {}{}\n", dump.rank, dump.host,
                                join(std::span(dump.waiting).first(std::min<std::size_t>(dump.waiting.size(), 5)), ", "),
                                dump.waiting.size() > 5 ? fmt::format(" and {} more", dump.waiting.size() - 5) : "");
    return text + explain_reasons(dumps);
}

}  // namespace

std::string explain(std::span<flight_dump const> dumps) {
    if (dumps.empty()) return "no flight recorder's files\n";
    std::map<int, std::vector<flight_dump>> generations;
    for (auto const& each : dumps) generations[each.generation].push_back(each);
    std::string text;
    for (auto const& [generation, ranks] : generations) {
        if (generations.size() > 1 || generation != 0) text += fmt::format("generation {}:\n", generation);
        text += explain_generation(ranks);
    }
    return text;
}

std::vector<flight_dump> read_flight_dumps(std::string const& folder) {
    std::vector<flight_dump> dumps;
    for (auto const& each : find_rank_files("flight", folder,
                                            "ranks write them only if an exchange failed: give the folder that "
                                            "MUSTER_FLIGHT_RECORDER named in such a run"))
        dumps.push_back(parse_flight_dump(read_text_file(each.path), each.path));
    return dumps;
}

}  // namespace muster
