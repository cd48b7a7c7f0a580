#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/backend_table.hpp"
#include "comm/exchange/core/exchange_core.hpp"
#include "comm/exchange/observe/timeline.hpp"

namespace muster::detail {

// Setup of an exchange with the other ranks: compares options, gathers names, measures clocks, opens the device.

namespace {

tensor_view bytes_view(void* data, std::size_t bytes) {
    return {data, bytes, dtype::u8, memory_kind::host};
}

/// Every rank sees every rank's, so all of them throw, or none.
void check_options(communicator& ranks, exchange_options const& options) {
    auto const rows = backend_table();
    std::array<std::int64_t, 3> const mine{static_cast<std::int64_t>(options.fusion_bytes),
                                           static_cast<std::int64_t>(options.cache_capacity),
                                           &device_row(options.comm.backend) - rows.data()};
    static constexpr std::array names{"fusion_bytes", "cache_capacity", "comm.backend, for device memory,"};
    auto const text = [&](std::size_t which, std::int64_t value) {
        return which + 1 == names.size() ? std::string(rows[static_cast<std::size_t>(value)].name) : std::to_string(value);
    };
    std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(ranks.size()));
    ranks.allgather("exchange options", input_of(std::span(mine)), view_of(std::span(all))).wait();
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::size_t const which = i % mine.size();
        if (all[i] == all[which]) continue;
        int const rank = static_cast<int>(i / mine.size());
        throw comm_error(
            errc::usage,
            fmt::format("the option {} of the exchange is {} on rank 0 ({}) and {} on rank {} ({}); give the same everywhere",
                        names[which], text(which, all[which]), ranks.host_of(0), text(which, all[i]), rank, ranks.host_of(rank)),
            {rank});
    }
}

/// The identity of a rank that did not know which of the others are on its node.
identity among_members(identity const& who, communicator const& ranks) {
    std::vector<int> all;
    std::vector<std::string> hosts;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        all.push_back(rank);
        hosts.push_back(ranks.host_of(rank));
    }
    return identity_in_set(who, all, static_cast<std::size_t>(who.rank), hosts);
}

}  // namespace

negotiator::hooks exchange_core::hooks_of_any_set() {
    negotiator::hooks calls;
    calls.caller_waits = [this](int set) { return caller_waits(set); };
    calls.forget_turns = [this](int set) {
        std::scoped_lock const lock(guard_);
        std::erase_if(turns_, [&](auto const& each) { return each.first.second == set; });
    };
    return calls;
}

void exchange_core::set_up(communicator ranks) {
    backend_ = ranks.backend();
    why_backend_ = ranks.why_backend();
    check_options(ranks, options_);
    places_ = gather_places(ranks);
    if (!options_.comm.members.empty()) who_ = among_members(who_, ranks);
    measure_clocks(ranks);
    if (!options_.timeline_folder.empty()) trace.start(options_.timeline_folder, offset, options_.mark_cycles);
    std::vector<int> everyone(static_cast<std::size_t>(ranks.size()));
    for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
    sets_.push_back({std::move(everyone), false, process_set::standing::open});
    negotiator::hooks calls = hooks_of_any_set();
    calls.make_set = [this](communicator& all, std::vector<int> const& members, bool by_members) {
        return make_set(all, members, by_members);
    };
    calls.remove_set = [this](int set) { remove_set(set); };
    calls.open_device = [this](communicator& all) { open_device(all); };
    negotiators_.push_back(std::make_unique<negotiator>(0, std::move(ranks), shared_, places_, std::move(calls)));
    ranks_ = &negotiators_.front()->ranks();
}

std::vector<std::string> exchange_core::gather_places(communicator& ranks) const {
    constexpr std::size_t longest = 48;
    std::array<char, longest> mine{};
    std::copy_n(options_.device_name.data(), std::min(options_.device_name.size(), longest - 1), mine.data());
    std::vector<char> all(longest * static_cast<std::size_t>(ranks.size()));
    ranks.allgather("devices", bytes_view(mine.data(), mine.size()), bytes_view(all.data(), all.size())).wait();
    std::vector<std::string> places;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        std::string const device = all.data() + static_cast<std::size_t>(rank) * longest;
        places.push_back(device.empty() ? ranks.host_of(rank) : ranks.host_of(rank) + ", " + device);
    }
    return places;
}

void exchange_core::measure_clocks(communicator& ranks) {
    constexpr int readings = 8;
    auto const size = static_cast<std::size_t>(ranks.size());
    std::vector<std::array<std::int64_t, 2>> mine(readings);
    std::int64_t ignored = 0;
    for (auto& each : mine) {
        each[0] = trace_time(exchange_clock::now());
        ranks.allreduce("clocks", view_of(std::span(&ignored, 1)), reduction::max).wait();
        each[1] = trace_time(exchange_clock::now());
    }
    std::size_t const bytes = readings * sizeof mine[0];
    std::vector<std::array<std::int64_t, 2>> all(readings * size);
    ranks.allgather("clocks", bytes_view(mine.data(), bytes), bytes_view(all.data(), bytes * size)).wait();
    if (ranks.rank() == 0) return;
    std::vector<clock_reading> pairs;
    for (std::size_t i = 0; i < readings; ++i) pairs.push_back({all[i][0], all[i][1], mine[i][0], mine[i][1]});
    offset = estimate_offset(pairs);
    // Ranks of one host read the same clock.
    if (ranks.host_of(0) == ranks.host_of(ranks.rank()) && std::abs(offset.offset_us) <= offset.error_us) offset = {};
}

/// By the negotiator of all ranks: making communicators blocks, so every rank must do it at the same point of the order. Two
/// ranks that were at different sets would wait for each other without end.
void exchange_core::ask_for_device() {
    asked_for_device_ = true;
    auto what = std::make_shared<exchange_request>();
    what->kind = exchange_kind::open_device;
    what->name = open_device_name;
    auto ask = pending_ptr::make();
    ask->what = std::move(what);
    ask->submitted = exchange_clock::now();
    negotiators_.front()->submit(std::move(ask));
}

void exchange_core::open_device(communicator& ranks) {
    asked_for_device_ = true;
    if (whole_lane_ != nullptr || !no_device_.empty()) return;
    auto whole = open_lane(ranks, options_.comm, gpu_, no_device_);
    if (!whole) {
        for (auto const& each : negotiators_)
            if (each) each->refuse_device(no_device_);
        return;
    }
    whole_lane_ = whole.get();
    {
        std::scoped_lock const lock(guard_);
        device_backend_ = whole_lane_->ranks.backend();
    }
    negotiators_.front()->use_lane(std::move(whole));
    for (std::size_t set = 1; set < negotiators_.size(); ++set) {
        std::vector<int> members;
        {
            std::scoped_lock const lock(guard_);
            if (sets_[set].is == process_set::standing::removed) continue;
            members = sets_[set].members;
        }
        auto lane = lane_over(members);
        if (negotiators_[set]) negotiators_[set]->use_lane(std::move(lane));
    }
}

/// Collective over all ranks; null on ranks that are not members.
std::unique_ptr<device_lane> exchange_core::lane_over(std::vector<int> const& members) {
    communicator part = whole_lane_->ranks.include(members);
    return part ? std::make_unique<device_lane>(std::move(part), whole_lane_->on, whole_lane_->kernels) : nullptr;
}

// The process sets of an exchange: made, asked for, removed.

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
    check_process();
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
        some ? std::make_unique<negotiator>(number, std::move(some), shared_, std::move(places), hooks_of_any_set()) : nullptr);
    auto lane = whole_lane_ != nullptr ? lane_over(members) : nullptr;
    if (negotiators_.back() && lane) negotiators_.back()->use_lane(std::move(lane));
    if (negotiators_.back() && !no_device_.empty()) negotiators_.back()->refuse_device(no_device_);
    std::scoped_lock const lock(guard_);
    sets_.push_back({members, by_members, standing::open});
    return number;
}

std::vector<int> exchange_core::close_set(int set) {
    check_process();
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
    check_process();
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
    check_process();
    std::scoped_lock const lock(guard_);
    return messages_[{set, peer, tag, sends}]++;
}

std::string_view exchange_core::device_backend() const {
    check_process();
    std::scoped_lock const lock(guard_);
    return device_backend_;
}

}  // namespace muster::detail
