#include "comm/membership/member_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {

namespace {

std::optional<news_of_world> note_lost(member_view& view, elastic::lost const& word) {
    if (!view.now || word.generation != view.now->number) return std::nullopt;
    if (!view.lost) view.lost = elastic::lost{word.generation, {}, word.why};
    view.lost->ranks.insert(view.lost->ranks.end(), word.ranks.begin(), word.ranks.end());
    return news_of_world{word.why, word.ranks};
}

std::optional<news_of_world> begin(member_view& view, elastic::generation const& word) {
    if (view.now && word.number <= view.now->number) return std::nullopt;
    view = {.now = word, .closed = view.closed};
    return news_of_world{fmt::format("generation {} of the world begins", word.number), {}, true};
}

}  // namespace

std::optional<news_of_world> take(member_view& view, elastic::message const& word) {
    if (auto const* const lost = std::get_if<elastic::lost>(&word)) return note_lost(view, *lost);
    if (auto const* const next = std::get_if<elastic::generation>(&word)) return begin(view, *next);
    if (auto const* const hosts = std::get_if<elastic::hosts_changed>(&word)) {
        view.hosts.added = view.hosts.added || hosts->added;
        view.hosts.removed = view.hosts.removed || hosts->removed;
    }
    return std::nullopt;
}

void close(member_view& view) {
    view.closed = true;
}

bool is_broken(member_view const& view, int generation) {
    return view.lost || view.closed || view.now->number != generation;
}

reform_state state_of_reform(member_view const& view, int after) {
    if (view.now->number > after) return reform_state::begun;
    return view.closed ? reform_state::closed : reform_state::waits;
}

elastic::hosts_changed take_host_changes(member_view& view) {
    return std::exchange(view.hosts, {});
}

std::optional<std::vector<int>> ranks_within(std::span<int const> members, std::vector<int> const& ranks) {
    if (members.empty() || ranks.empty()) return ranks;
    std::vector<int> theirs;
    for (int const rank : ranks)
        if (auto const at = std::find(members.begin(), members.end(), rank); at != members.end())
            theirs.push_back(static_cast<int>(at - members.begin()));
    if (theirs.empty()) return std::nullopt;
    return theirs;
}

}  // namespace muster
