#include "comm/exchange/negotiation/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace muster {

namespace {

/// "22:10:03.120450 UTC"
std::string time_of_day(std::int64_t since_epoch_us) {
    auto const s = since_epoch_us / 1'000'000 % 86'400;
    return fmt::format("{:02}:{:02}:{:02}.{:06} UTC", s / 3600, s / 60 % 60, s % 60, since_epoch_us % 1'000'000);
}

}  // namespace

coordinator::coordinator(std::vector<std::string> hosts)
    : hosts_(std::move(hosts)), joined_(hosts_.size(), false), left_(hosts_.size(), false) {}

std::string coordinator::who(int rank) const {
    return fmt::format("rank {} ({})", rank, hosts_.at(static_cast<std::size_t>(rank)));
}

std::string coordinator::who(std::span<int const> ranks) const {
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i) text += (i == 0 ? "" : ", ") + who(ranks[i]);
    if (ranks.size() > most) text += fmt::format(" and {} more", ranks.size() - most);
    return text;
}

void coordinator::announce(int from, exchange_request what) {
    auto const index = static_cast<std::size_t>(from);
    if (what.kind == exchange_kind::join) {
        if (!joined_.at(index)) {
            joined_[index] = true;
            ++joined_count_;
            last_to_join_ = from;
        }
        everything_touched_ = true;
        return;
    }
    if (what.kind == exchange_kind::leave) {
        if (!left_.at(index)) {
            left_[index] = true;
            ++left_count_;
        }
        everything_touched_ = true;
        return;
    }
    entry& into = entries_[what.name];
    if (into.of.empty()) into.of.resize(hosts_.size());
    if (!into.of.at(index)) ++into.count;
    touched_.push_back(what.name);
    into.of[index] = std::move(what);
}

/// Any rank's giving up or having tensors in device memory.
bool coordinator::needs_no_consent(entry const& each) {
    return std::any_of(each.of.begin(), each.of.end(), [](auto const& one) {
        return one && (one->kind == exchange_kind::give_up || one->kind == exchange_kind::open_device);
    });
}

bool coordinator::is_complete(entry const& each) const {
    return each.count != 0 && missing_of(each).empty();
}

/// Returns, by rank, the parties that any announcing rank named; empty if all ranks are parties.
std::vector<bool> coordinator::parties_of_any(entry const& each) const {
    std::vector<bool> parties;
    for (auto const& one : each.of) {
        if (!one || parties_of(*one).empty()) continue;
        parties.resize(hosts_.size(), false);
        for (std::int64_t const rank : parties_of(*one))
            if (rank >= 0 && static_cast<std::size_t>(rank) < parties.size()) parties[static_cast<std::size_t>(rank)] = true;
    }
    return parties;
}

/// Returns the ranks that must still announce it: of all that have not joined, or of the parties.
std::vector<int> coordinator::missing_of(entry const& each) const {
    auto const parties = parties_of_any(each);
    std::vector<int> missing;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
        if (!each.of[rank] && (parties.empty() ? !joined_[rank] : parties[rank])) missing.push_back(static_cast<int>(rank));
    return missing;
}

/// The threads of ranks that have left go on until all have, and so take part in what is not the matter of all.
bool coordinator::a_party_has_left(entry const& each) const {
    if (!anyone_left()) return false;
    auto const parties = parties_of_any(each);
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
        if (left_[rank] && (parties.empty() || parties[rank])) return true;
    return false;
}

std::vector<agreement> coordinator::take_ready() {
    std::vector<agreement> ready;
    auto names = std::exchange(touched_, {});
    if (std::exchange(everything_touched_, false))
        for (auto const& [name, each] : entries_) names.push_back(name);
    for (auto const& name : names) {
        auto const found = entries_.find(name);
        if (found == entries_.end()) continue;
        bool const alone = needs_no_consent(found->second);
        if (!alone && a_party_has_left(found->second))
            ready.push_back(refuse(first_of(found->second)));
        else if (alone || is_complete(found->second))
            ready.push_back(conclude(found->second));
        else
            continue;
        entries_.erase(found);
    }
    if (joined_count_ == ranks() || (joined_count_ > 0 && anyone_left())) {
        agreement all;
        all.what.kind = exchange_kind::join;
        all.what.name = join_name;
        all.last = last_to_join_;
        all.whole = false;
        ready.push_back(anyone_left() ? refuse(std::move(all.what)) : std::move(all));
        joined_.assign(joined_.size(), false);
        joined_count_ = 0;
    }
    return ready;
}

/// Returns the request of the lowest rank that announced it.
exchange_request coordinator::first_of(entry const& each) {
    return **std::find_if(each.of.begin(), each.of.end(), [](auto const& one) { return one.has_value(); });
}

agreement coordinator::refuse(exchange_request what) const {
    agreement result;
    result.what = std::move(what);
    result.whole = false;
    for (std::size_t rank = 0; rank < left_.size(); ++rank)
        if (left_[rank]) result.culprits.push_back(static_cast<int>(rank));
    result.fault = fmt::format("{}: {} {} {}", describe(result.what.kind, result.what.name), who(result.culprits),
                               result.culprits.size() == 1 ? "has" : "have", ended_exchange_words);
    return result;
}

agreement coordinator::conclude(entry const& all) const {
    agreement result;
    int lowest = -1;
    for (std::size_t rank = 0; rank < hosts_.size() && lowest < 0; ++rank)
        if (all.of[rank]) lowest = static_cast<int>(rank);
    result.what = *all.of[static_cast<std::size_t>(lowest)];
    result.whole = !anyone_joined();
    find_mismatch(all, lowest, result);
    if (!result.fault.empty()) return result;
    gather_numbers(all, result);
    apply_join(result);
    return result;
}

void coordinator::find_mismatch(entry const& all, int lowest, agreement& result) const {
    disagreement shown;
    std::vector<int> same{lowest}, differ;
    for (std::size_t rank = static_cast<std::size_t>(lowest) + 1; rank < hosts_.size(); ++rank) {
        if (!all.of[rank]) continue;
        auto const each = compare(result.what, *all.of[rank]);
        if (!each) {
            same.push_back(static_cast<int>(rank));
            continue;
        }
        result.culprits.push_back(static_cast<int>(rank));
        if (!shown) shown = each;
        if (each.mine == shown.mine && each.theirs == shown.theirs) differ.push_back(static_cast<int>(rank));
    }
    if (!shown) return;
    auto const others = result.culprits.size() - differ.size();
    result.fault = fmt::format("{}: {} on {}, but {} on {}{}; submit it alike on all ranks",
                               describe(result.what.kind, result.what.name), shown.mine, who(same), shown.theirs, who(differ),
                               others == 0 ? "" : fmt::format(", and {} more rank(s) differ in other ways", others));
}

void coordinator::gather_numbers(entry const& all, agreement& result) const {
    std::size_t const ranks = hosts_.size();
    if (result.what.kind == exchange_kind::allgather) {
        std::size_t const tensors = result.what.tensors.size();
        result.numbers.resize(tensors * ranks);
        for (std::size_t rank = 0; rank < ranks; ++rank)
            for (std::size_t tensor = 0; all.of[rank] && tensor < tensors; ++tensor)
                result.numbers[tensor * ranks + rank] = all.of[rank]->tensors.at(tensor).shape.rows();
    }
    if (result.what.kind != exchange_kind::alltoall) return;
    result.numbers.resize(ranks * ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (!all.of[rank]) continue;
        auto const& splits = all.of[rank]->numbers;
        for (std::size_t to = 0; to < ranks && to < splits.size(); ++to) result.numbers[rank * ranks + to] = splits[to];
    }
}

/// A rank that has joined has no rows to give and no use for what it would receive.
void coordinator::apply_join(agreement& result) const {
    if (!anyone_joined()) return;
    result.whole = false;
    std::size_t const ranks = hosts_.size();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (!joined_[rank]) continue;
        if (result.what.kind == exchange_kind::allgather)
            for (std::size_t at = rank; at < result.numbers.size(); at += ranks) result.numbers[at] = 0;
        if (result.what.kind == exchange_kind::alltoall)
            for (std::size_t other = 0; other < ranks; ++other)
                result.numbers.at(rank * ranks + other) = result.numbers.at(other * ranks + rank) = 0;
    }
    if (result.what.kind == exchange_kind::broadcast && is_joined(result.what.root)) {
        result.culprits = {result.what.root};
        result.fault = fmt::format("{}: its root, {}, has joined and has nothing to send",
                                   describe(result.what.kind, result.what.name), who(result.what.root));
    }
    if (result.what.kind == exchange_kind::include) {
        for (std::size_t rank = 0; rank < ranks; ++rank)
            if (joined_[rank]) result.culprits.push_back(static_cast<int>(rank));
        result.fault = fmt::format("{}: {} joined; make process sets before", describe(result.what.kind, result.what.name),
                                   who(result.culprits));
    }
}

agreement coordinator::revise(agreement cached) const {
    apply_join(cached);
    return cached;
}

/// The longest first.
std::vector<exchange_request const*> coordinator::announced_by(std::size_t rank) const {
    std::vector<exchange_request const*> all;
    for (auto const& [name, each] : entries_)
        if (each.of[rank]) all.push_back(&*each.of[rank]);
    std::stable_sort(all.begin(), all.end(), [](auto const* a, auto const* b) { return a->since_us < b->since_us; });
    return all;
}

std::string coordinator::who_waits_in_what() const {
    constexpr std::size_t most_ranks = 64, most_requests = 3;
    std::string text;
    for (std::size_t rank = 0; rank < std::min(hosts_.size(), most_ranks); ++rank) {
        auto const all = announced_by(rank);
        text += fmt::format("{}{} ", rank == 0 ? "" : "; ", who(static_cast<int>(rank)));
        if (all.empty()) text += joined_[rank] ? "has joined" : left_[rank] ? "has ended the exchange" : "has announced no call";
        for (std::size_t i = 0; i < std::min(all.size(), most_requests); ++i)
            text += fmt::format("{}{} since {}", i == 0 ? "waits in " : ", ", describe(all[i]->kind, all[i]->name),
                                time_of_day(all[i]->since_us));
        if (all.size() > most_requests) text += fmt::format(" and {} more", all.size() - most_requests);
    }
    if (hosts_.size() > most_ranks) text += fmt::format("; and {} more ranks", hosts_.size() - most_ranks);
    return text;
}

agreement coordinator::never_meet(int set) {
    agreement result;
    result.whole = false;
    std::string const of = set == 0 ? "" : fmt::format(" of process set {}, by their numbers in it,", set);
    result.fault = fmt::format(
        "all ranks{} wait, and none of these calls is on all of them: {}; call the same on all ranks, in the same order", of,
        who_waits_in_what());
    std::map<std::string, std::vector<int>> by_call;
    std::string most;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
        auto const all = announced_by(rank);
        std::string const call = all.empty() ? "" : all.front()->name;
        auto& same = by_call[call];
        same.push_back(static_cast<int>(rank));
        if (rank == 0 || same.size() > by_call[most].size()) most = call;
    }
    for (auto const& [call, ranks] : by_call)
        if (call != most) result.culprits.insert(result.culprits.end(), ranks.begin(), ranks.end());
    std::sort(result.culprits.begin(), result.culprits.end());
    entries_.clear();
    touched_.clear();
    return result;
}

std::vector<incomplete> coordinator::waiting() const {
    std::vector<incomplete> all;
    for (auto const& [name, each] : entries_) {
        incomplete one;
        for (std::size_t rank = hosts_.size(); rank-- > 0;)
            if (each.of[rank]) one.what = *each.of[rank];
        one.missing = missing_of(each);
        all.push_back(std::move(one));
    }
    return all;
}

}  // namespace muster
