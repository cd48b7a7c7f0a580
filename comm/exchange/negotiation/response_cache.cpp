#include "comm/exchange/negotiation/response_cache.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace muster {

response_cache::response_cache(std::size_t capacity, std::size_t most)
    : capacity_(std::max<std::size_t>(capacity, 1)), most_(std::max(most, capacity_)) {}

std::optional<response_cache::position> response_cache::find(std::string const& name) const {
    auto const found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    return found->second;
}

bool response_cache::repeats(position at, exchange_request const& now) const {
    return is_repetition(*entries_.at(at)->mine, now);
}

std::shared_ptr<agreement const> const& response_cache::at(position where) const {
    expect(entries_.at(where).has_value(), "a cached agreement is there");
    return entries_[where]->what;
}

response_cache::position response_cache::insert(std::shared_ptr<agreement const> what,
                                                std::shared_ptr<exchange_request const> mine) {
    std::string const name = what->what.name;
    if (auto const old = find(name)) erase(*old);
    if (used() >= capacity_ && evicted_.contains(name)) capacity_ = std::min(most_, capacity_ * 2);
    if (used() >= capacity_) make_room();
    position where = entries_.size();
    if (free_.empty()) {
        entries_.emplace_back();
    } else {
        where = free_.back();
        free_.pop_back();
    }
    turns_.push_back(where);
    by_name_.emplace(name, where);
    entries_[where] = entry{std::move(what), std::move(mine), std::prev(turns_.end())};
    return where;
}

void response_cache::erase(position where) {
    auto& gone = entries_.at(where);
    if (!gone) return;
    by_name_.erase(gone->what->what.name);
    turns_.erase(gone->turn);
    gone.reset();
    free_.push_back(where);
}

void response_cache::clear() {
    entries_.clear();
    free_.clear();
    by_name_.clear();
    turns_.clear();
}

void response_cache::touch(position where) {
    turns_.splice(turns_.end(), turns_, entries_.at(where)->turn);
}

void response_cache::make_room() {
    position const oldest = turns_.front();
    remember(entries_[oldest]->what->what.name);
    erase(oldest);
}

void response_cache::remember(std::string const& name) {
    if (!evicted_.insert(name).second) return;
    evicted_order_.push_back(name);
    if (evicted_order_.size() <= most_) return;
    evicted_.erase(evicted_order_.front());
    evicted_order_.pop_front();
}

}  // namespace muster
