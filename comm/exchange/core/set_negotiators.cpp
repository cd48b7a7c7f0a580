#include "comm/exchange/core/set_negotiators.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/speaker.hpp"

namespace muster::detail {

void set_table::add(std::vector<int> members, bool by_members) {
    sets_.push_back({std::move(members), by_members, standing::open});
}

void set_table::check(int set) const {
    if (set < 0 || static_cast<std::size_t>(set) >= sets_.size())
        throw comm_error(errc::usage,
                         fmt::format("there is no process set {}; there are {} (0 is all ranks)", set, sets_.size()));
    if (sets_[static_cast<std::size_t>(set)].is != standing::open)
        throw comm_error(errc::usage, fmt::format("process set {} ({}) has been removed; make another", set, speaker(who_)));
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

negotiator::hooks set_negotiators::hooks_of_any_set() const {
    negotiator::hooks calls;
    calls.caller_waits = calls_.caller_waits;
    calls.forget_turns = calls_.forget_turns;
    return calls;
}

void set_negotiators::start(communicator ranks, std::vector<std::string> places) {
    places_ = std::move(places);
    std::vector<int> everyone;
    for (int rank = 0; rank < ranks.size(); ++rank) everyone.push_back(rank);
    calls_.on_made(everyone, false);
    members_.push_back(std::move(everyone));
    negotiator::hooks calls = hooks_of_any_set();
    calls.make_set = [this](communicator& all, std::vector<int> const& members, bool by_members) {
        return make_set(all, members, by_members);
    };
    calls.remove_set = [this](int set) { remove_set(set); };
    calls.open_device = [this](communicator& all) { open_device(all); };
    all_.push_back(std::make_unique<negotiator>(0, std::move(ranks), shared_, places_, std::move(calls)));
}

void set_negotiators::submit(pending_ptr one) {
    if (one->gpu && !asked_for_device_) {
        asked_for_device_ = true;
        all_.front()->submit(pending_ptr::make_internal(exchange_kind::open_device, open_device_name, 0));
    }
    all_.at(static_cast<std::size_t>(one->set))->submit(std::move(one));
}

bool set_negotiators::step(exchange_clock::time_point now, bool hurry, step_result& overall) {
    bool all_ended = true;
    // The loop must expect that a new process set adds a negotiator.
    for (std::size_t i = 0; i < all_.size(); ++i) {
        if (!all_[i]) continue;
        if (hurry) all_[i]->hurry();
        overall.add(all_[i]->step(now));
        all_ended = all_ended && all_[i]->ended();
    }
    end_removed();
    return all_ended;
}

int set_negotiators::make_set(communicator& ranks, std::vector<int> const& members, bool by_members) {
    communicator some = ranks.include(members);
    std::vector<std::string> places;
    for (int const rank : members) places.push_back(places_.at(static_cast<std::size_t>(rank)));
    int const number = static_cast<int>(all_.size());
    all_.push_back(some ? std::make_unique<negotiator>(number, std::move(some), shared_, std::move(places), hooks_of_any_set())
                        : nullptr);
    members_.push_back(members);
    auto lane = whole_lane_ != nullptr ? lane_over(members) : nullptr;
    if (all_.back() && lane) all_.back()->use_lane(std::move(lane));
    if (all_.back() && !no_device_.empty()) all_.back()->refuse_device(no_device_);
    calls_.on_made(members, by_members);
    return number;
}

/// The ranks may be at different points of one of the set's rounds: they leave it as they leave the exchange at its end.
void set_negotiators::remove_set(int set) {
    calls_.on_removed(set);
    shared_.lost.forget(set);
    shared_.lost_on_device.forget(set);
    members_.at(static_cast<std::size_t>(set)).clear();
    auto const& of = all_.at(static_cast<std::size_t>(set));
    if (!of) return;
    of->submit(pending_ptr::make_internal(exchange_kind::leave, leave_name, set));
    ending_.push_back(set);
}

/// Ends them one after the other, in the order that all ranks share: ending a communicator may take all of its ranks.
void set_negotiators::end_removed() {
    while (!ending_.empty()) {
        auto& of = all_[static_cast<std::size_t>(ending_.front())];
        if (!of->ended()) return;
        of.reset();
        ending_.pop_front();
    }
}

void set_negotiators::open_device(communicator& ranks) {
    asked_for_device_ = true;
    if (whole_lane_ != nullptr || !no_device_.empty()) return;
    auto whole = open_lane(ranks, shared_.options.comm, shared_.gpu, no_device_);
    if (!whole) {
        for (auto const& each : all_)
            if (each) each->refuse_device(no_device_);
        return;
    }
    whole_lane_ = whole.get();
    calls_.on_device(whole_lane_->ranks.backend());
    all_.front()->use_lane(std::move(whole));
    for (std::size_t set = 1; set < all_.size(); ++set) {
        if (members_[set].empty()) continue;
        auto lane = lane_over(members_[set]);
        if (all_[set]) all_[set]->use_lane(std::move(lane));
    }
}

/// Collective over all ranks. Returns null on ranks that are not members.
std::unique_ptr<device_lane> set_negotiators::lane_over(std::vector<int> const& members) {
    communicator part = whole_lane_->ranks.include(members);
    return part ? std::make_unique<device_lane>(std::move(part), whole_lane_->on, whole_lane_->kernels) : nullptr;
}

void set_negotiators::give_back(std::vector<pending_ptr>& into) {
    for (auto const& each : all_)
        if (each) each->give_back(into);
}

void set_negotiators::leak() noexcept {
    for (auto const& each : all_)
        if (each) each->leak();
}

void set_negotiators::clear() noexcept {
    while (!all_.empty()) all_.pop_back();
}

}  // namespace muster::detail
