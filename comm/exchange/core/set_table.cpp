#include "comm/exchange/core/set_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/backend/comm_error.hpp"

namespace muster::detail {

void set_table::add(std::vector<int> members, bool by_members) {
    sets_.push_back({std::move(members), by_members, standing::open});
}

void set_table::check(int set) const {
    if (set < 0 || static_cast<std::size_t>(set) >= sets_.size())
        throw comm_error(errc::usage,
                         fmt::format("there is no process set {}; there are {} (0 is all ranks)", set, sets_.size()));
    if (sets_[static_cast<std::size_t>(set)].is != standing::open)
        throw comm_error(errc::usage, fmt::format("process set {} (rank {} of {} on {}) has been removed; make another", set,
                                                  who_.rank, who_.world_size, who_.host));
}

std::vector<int> const& set_table::members(int set) const {
    check(set);
    return sets_[static_cast<std::size_t>(set)].members;
}

std::vector<int> set_table::of_this_rank() const {
    std::vector<int> found;
    for (std::size_t set = 0; set < sets_.size(); ++set) {
        auto const& [members, by_members, is] = sets_[set];
        if (is != standing::removed && std::find(members.begin(), members.end(), who_.rank) != members.end())
            found.push_back(static_cast<int>(set));
    }
    return found;
}

std::vector<int> const& set_table::close(int set) {
    check(set);
    at(set).is = standing::closing;
    return at(set).by_members ? at(set).members : sets_.front().members;
}

void set_table::reopen(int set) {
    if (at(set).is == standing::closing) at(set).is = standing::open;
}

void set_table::remove(int set) {
    at(set).is = standing::removed;
    forget_turns(set);
    std::erase_if(messages_, [&](auto const& each) { return std::get<0>(each.first) == set; });
}

void set_table::forget_turns(int set) {
    std::erase_if(turns_, [&](auto const& each) { return each.first.second == set; });
}

}  // namespace muster::detail
