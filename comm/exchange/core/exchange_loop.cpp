// The loop of an exchange's thread: takes submissions, steps the negotiators, sleeps.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <new>
#include <thread>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend_table.hpp"
#include "comm/exchange/core/exchange_core.hpp"

namespace muster::detail {

using namespace std::chrono_literals;

namespace {

/// A backend for device memory that is asked for is that of the lanes.
comm_options host_options(comm_options options) {
    if (!options.backend.empty() && device_row(options.backend).name == options.backend) options.backend.clear();
    return options;
}

}  // namespace

void exchange_core::run() {
    try {
        set_up(communicator::create(who_, host_options(options_.comm)));
    } catch (...) {
        start_problem_ = std::current_exception();
        negotiators_.clear();
    }
    {
        std::scoped_lock const lock(start_guard_);
        is_started_ = true;
    }
    started_.notify_all();
    if (start_problem_) return;
    std::vector<pending_ptr> left;
    // A communicator that is destroyed while an exception passes does not wait for other ranks.
    struct ending {
        exchange_core& core;
        std::vector<pending_ptr>& left;
        ~ending() {
            {
                std::scoped_lock const lock(core.guard_);
                core.ranks_ = nullptr;
            }
            if (std::uncaught_exceptions() > 0) {
                for (auto const& each : core.negotiators_)
                    if (each) each->give_back(left);
                for (auto const& each : core.negotiators_)
                    if (each) each->leak();
                static_cast<void>(new (std::nothrow) device_residuals(std::move(core.lost_on_device_)));
            }
            while (!core.negotiators_.empty()) core.negotiators_.pop_back();
        }
    };
    try {
        ending const at_end{*this, left};
        loop();
    } catch (...) {
        fail(std::current_exception());
        fail_what_is_left(std::move(left));
    }
}

bool exchange_core::drain() {
    if (!has_work_.load(std::memory_order_acquire)) return false;
    {
        std::scoped_lock const lock(guard_);
        taken_.swap(queue_);
        queued_bytes_ = 0;
        has_work_.store(false, std::memory_order_relaxed);
    }
    for (auto& each : taken_) {
        if (each->gpu && !asked_for_device_) ask_for_device();
        negotiators_.at(static_cast<std::size_t>(each->set))->submit(std::move(each));
    }
    taken_.clear();
    return true;
}

void exchange_core::loop() {
    auto quiet_since = exchange_clock::now();
    for (;;) {
        if (abandon_.load(std::memory_order_acquire))
            throw comm_error(errc::peer_failed,
                             fmt::format("the exchange was destroyed by an exception on rank {} ({})", who_.rank, who_.host));
        step_result overall;
        bool const hurry = hurry_.exchange(false, std::memory_order_acquire);
        overall.moved = drain();
        auto const now = exchange_clock::now();
        bool all_ended = true;
        // Making a process set adds a negotiator meanwhile.
        for (std::size_t i = 0; i < negotiators_.size(); ++i) {
            if (!negotiators_[i]) continue;
            if (hurry) negotiators_[i]->hurry();
            overall.add(negotiators_[i]->step(now));
            all_ended = all_ended && negotiators_[i]->ended();
        }
        end_removed_sets();
        if (all_ended) break;
        if (overall.moved)
            quiet_since = now;
        else
            pause(overall, quiet_since);
    }
    end_well();
}

void exchange_core::end_well() {
    // Requests to leave end well: all ranks have left.
    std::vector<pending_ptr> left;
    for (auto const& each : negotiators_)
        if (each) each->give_back(left);
    for (auto const& each : left) {
        if (each->what->kind == exchange_kind::leave)
            complete(*each, count);
        else
            set_failed(*each, errc::usage,
                       fmt::format("{} (rank {} of {} on {}): the exchange ended before it",
                                   describe(each->what->kind, each->what->name), who_.rank, who_.world_size, who_.host),
                       {});
    }
    finish(left);
}

/// Between two checks of operations under way: first the processor is only offered to others, later the thread sleeps, for a
/// fraction of the time it has waited already, so that it is late by that fraction only.
void exchange_core::pause(step_result const& overall, exchange_clock::time_point quiet_since) {
    if (!overall.busy) {
        std::unique_lock lock(guard_);
        if (!queue_.empty() || woken_ || abandon_) {
            woken_ = false;
            return;
        }
        asleep_ = true;
        gathering_ = overall.gathering;
        // No predicate: to wake once too often does no harm.
        work_.wait_until(lock, std::min(overall.wake, exchange_clock::now() + 100ms));
        asleep_ = gathering_ = false;
        woken_ = false;
        return;
    }
    auto const quiet = exchange_clock::now() - quiet_since;
    // All ranks work on the same data, and many backends move it within calls only.
    if (quiet < (overall.data ? 200ms : 200us)) {
        ::sched_yield();
        return;
    }
    std::this_thread::sleep_for(std::clamp<exchange_clock::duration>(quiet / (overall.data ? 256 : 16), 20us, 1ms));
}

}  // namespace muster::detail
