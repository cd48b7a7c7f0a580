#include "comm/exchange/negotiation/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {

coordinator::coordinator(std::vector<std::string> hosts)
    : hosts_(std::move(hosts)), joined_(hosts_.size(), false), left_(hosts_.size(), false) {}

std::string coordinator::who(int rank) const {
    return fmt::format("rank {} ({})", rank, hosts_.at(static_cast<std::size_t>(rank)));
}

std::string coordinator::who(std::span<int const> ranks) const {
    constexpr std::size_t most = 8;
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i)
        text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", ranks[i], hosts_.at(static_cast<std::size_t>(ranks[i])));
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
    if (each.count == 0) return false;
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
        if (!each.of[rank] && !joined_[rank]) return false;
    return true;
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
        if (anyone_left() && !alone)
            ready.push_back(refuse(found->second));
        else if (alone || is_complete(found->second))
            ready.push_back(conclude(found->second));
        else
            continue;
        entries_.erase(found);
    }
    if (joined_count_ == ranks()) {
        agreement all;
        all.what.kind = exchange_kind::join;
        all.what.name = join_name;
        all.last = last_to_join_;
        all.whole = false;
        ready.push_back(std::move(all));
        joined_.assign(joined_.size(), false);
        joined_count_ = 0;
    }
    return ready;
}

agreement coordinator::refuse(entry const& all) const {
    agreement result;
    for (std::size_t rank = hosts_.size(); rank-- > 0;)
        if (all.of[rank]) result.what = *all.of[rank];
    result.whole = false;
    for (std::size_t rank = 0; rank < left_.size(); ++rank)
        if (left_[rank]) result.culprits.push_back(static_cast<int>(rank));
    result.fault =
        fmt::format("{}: {} {} ended the exchange and will not take part", describe(result.what.kind, result.what.name),
                    who(result.culprits), result.culprits.size() == 1 ? "has" : "have");
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
        result.numbers.resize(ranks);
        for (std::size_t rank = 0; rank < ranks; ++rank)
            if (all.of[rank]) result.numbers[rank] = all.of[rank]->tensors.at(0).shape.rows();
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
        if (result.what.kind == exchange_kind::allgather) result.numbers.at(rank) = 0;
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

std::vector<incomplete> coordinator::waiting() const {
    std::vector<incomplete> all;
    for (auto const& [name, each] : entries_) {
        incomplete one;
        for (std::size_t rank = hosts_.size(); rank-- > 0;)
            if (each.of[rank]) one.what = *each.of[rank];
        for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
            if (!each.of[rank] && !joined_[rank]) one.missing.push_back(static_cast<int>(rank));
        all.push_back(std::move(one));
    }
    return all;
}

}  // namespace muster
