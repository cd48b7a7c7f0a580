// The process sets of an exchange: made, asked for, removed.
#include <fmt/format.h>

#include <algorithm>

#include "comm/backend/comm_error.hpp"
#include "comm/backend_table.hpp"
#include "comm/exchange/core/exchange_core.hpp"

namespace muster::detail {

using standing = process_set::standing;

void exchange_core::check_set(int set) const {
    if (set < 0 || static_cast<std::size_t>(set) >= sets_.size())
        throw comm_error(errc::usage,
                         fmt::format("there is no process set {}; there are {} (0 is all ranks)", set, sets_.size()));
    if (sets_[static_cast<std::size_t>(set)].is != standing::open)
        throw comm_error(errc::usage, fmt::format("process set {} (rank {} of {} on {}) has been removed; make another", set,
                                                  who_.rank, who_.world_size, who_.host));
}

std::vector<int> exchange_core::members(int set) const {
    std::scoped_lock const lock(guard_);
    check_set(set);
    return sets_[static_cast<std::size_t>(set)].members;
}

int exchange_core::make_set(communicator& ranks, std::vector<int> const& members, bool by_members) {
    communicator some = ranks.include(members);
    std::vector<std::string> places;
    for (int const rank : members) places.push_back(places_.at(static_cast<std::size_t>(rank)));
    int const number = static_cast<int>(negotiators_.size());
    negotiators_.push_back(
        some ? std::make_unique<negotiator>(number, std::move(some), shared_, std::move(places), negotiator::hooks{}) : nullptr);
    auto lane = whole_lane_ != nullptr ? lane_over(members) : nullptr;
    if (negotiators_.back() && lane) negotiators_.back()->use_lane(std::move(lane));
    if (negotiators_.back() && !no_device_.empty()) negotiators_.back()->refuse_device(no_device_);
    std::scoped_lock const lock(guard_);
    sets_.push_back({members, by_members, standing::open});
    return number;
}

std::vector<int> exchange_core::close_set(int set) {
    std::scoped_lock const lock(guard_);
    check_open();
    check_set(set);
    process_set& one = sets_[static_cast<std::size_t>(set)];
    std::string in_flight;
    names_.for_in_flight([&](pending_request const& each) {
        if (each.set == set && in_flight.empty()) in_flight = describe(each.what->kind, each.what->name);
    });
    if (!in_flight.empty())
        throw comm_error(errc::usage,
                         fmt::format("process set {} (rank {} of {} on {}) has requests in flight ({}); wait for them "
                                     "before it is removed",
                                     set, who_.rank, who_.world_size, who_.host, in_flight));
    one.is = standing::closing;
    return one.by_members ? one.members : sets_.front().members;
}

void exchange_core::reopen_set(int set) {
    std::scoped_lock const lock(guard_);
    auto& is = sets_[static_cast<std::size_t>(set)].is;
    if (is == standing::closing) is = standing::open;
}

/// Its ranks are in a round of its own, perhaps, at different points of it: they leave it as at the end of the exchange.
void exchange_core::remove_set(int set) {
    {
        std::scoped_lock const lock(guard_);
        sets_.at(static_cast<std::size_t>(set)).is = standing::removed;
        names_.forget(set);
        std::erase_if(turns_, [&](auto const& each) { return each.first.second == set; });
        std::erase_if(messages_, [&](auto const& each) { return std::get<0>(each.first) == set; });
    }
    lost_.forget(set);
    lost_on_device_.forget(set);
    auto const& of = negotiators_.at(static_cast<std::size_t>(set));
    if (!of) return;
    auto what = std::make_shared<exchange_request>();
    what->kind = exchange_kind::leave;
    what->name = leave_name;
    auto leave = pending_ptr::make();
    leave->what = std::move(what);
    leave->set = set;
    leave->submitted = exchange_clock::now();
    of->submit(std::move(leave));
    ending_sets_.push_back(set);
}

/// One after the other, in the order that all ranks share: ending a communicator may take all of its ranks.
void exchange_core::end_removed_sets() {
    while (!ending_sets_.empty()) {
        auto& of = negotiators_[static_cast<std::size_t>(ending_sets_.front())];
        if (!of->ended()) return;
        of.reset();
        ending_sets_.pop_front();
    }
}

std::uint64_t exchange_core::count_message(int set, int peer, int tag, bool sends) {
    std::scoped_lock const lock(guard_);
    return messages_[{set, peer, tag, sends}]++;
}

std::string_view exchange_core::device_backend() const {
    std::scoped_lock const lock(guard_);
    return device_backend_;
}

}  // namespace muster::detail
