#include "comm/exchange/request/name_table.hpp"

#include <algorithm>

namespace muster::detail {

pending_ptr& name_table::last(int set, std::string_view name) {
    auto const index = static_cast<std::size_t>(set);
    if (index >= by_set_.size()) by_set_.resize(index + 1);
    names_of_set& names = by_set_[index];
    if (auto const found = names.requests.find(name); found != names.requests.end()) return found->second;
    if (names.requests.size() >= names.room) sweep(names);
    return names.requests.try_emplace(std::string(name)).first->second;
}

void name_table::forget(int set) {
    auto const index = static_cast<std::size_t>(set);
    if (index < by_set_.size()) by_set_[index] = {};
}

/// Forgets names that were not used since the sweep before: so names in use stay, and each costs a few comparisons in all.
void name_table::sweep(names_of_set& names) {
    auto const since = std::exchange(names.last_sweep, exchange_clock::now());
    std::erase_if(names.requests,
                  [&](auto const& each) { return !each.second || (!is_waiting(each.second) && each.second->submitted < since); });
    names.room = std::max<std::size_t>(4096, 2 * names.requests.size());
}

}  // namespace muster::detail
