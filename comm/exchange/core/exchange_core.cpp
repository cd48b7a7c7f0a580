#include "comm/exchange/core/exchange_core.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <new>
#include <thread>

#include "base/log.hpp"
#include "base/process/start_thread.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend_table.hpp"

namespace muster::detail {

namespace {

/// The ranks negotiate in host memory, whatever the tensors lie in.
exchange_options for_negotiation(exchange_options options) {
    options.comm.deadline = options.deadline;
    options.comm.memory = memory_kind::host;
    return options;
}

/// Whether a request that was made is what is asked for now.
bool is_same(pending_request const& before, single_allreduce const& now) {
    exchange_request const& what = *before.what;
    if (what.kind != exchange_kind::allreduce || before.many || what.tensors.size() != 1) return false;
    tensor_spec const& spec = what.tensors.front();
    return what.how == now.how && what.scale == now.scale && what.wire == now.wire && what.error_feedback == now.error_feedback &&
           spec.type == now.io.in.type && spec.where == now.io.in.where && spec.shape == now.shape;
}

shared_request make_request(single_allreduce const& from) {
    auto made = std::make_shared<exchange_request>();
    made->name = from.name;
    made->how = from.how;
    made->scale = from.scale;
    made->wire = from.wire;
    made->error_feedback = from.error_feedback;
    made->tensors.push_back({{}, from.io.in.type, from.io.in.where, from.shape});  // the request has the name
    made->places.push_back(reinterpret_cast<std::uint64_t>(from.io.in.data));
    return made;
}

/// What is to be submitted next under a name: the last request itself if nobody else has it any more.
pending_ptr next_after(pending_ptr& last, shared_request what) {
    bool const repeats = last && last->what == what;
    if (repeats && last->owners.load(std::memory_order_acquire) == 1) {
        last->use_again();
        return last;
    }
    pending_ptr next = pending_ptr::make();
    next->what = std::move(what);
    if (repeats) next->cache_place = last->cache_place;
    last = next;
    return next;
}

}  // namespace

exchange_core::exchange_core(identity const& who, exchange_options const& options)
    : trace(who.rank, who.world_size, who.host),
      who_(who),
      options_(for_negotiation(options)),
      deadline_(std::chrono::duration_cast<exchange_clock::duration>(options.deadline)),
      gpu_(options.comm.device, who.local_rank),
      shared_{options_, count, recorder, trace, lost_, gpu_, lost_on_device_, *this} {
    thread_ = start_thread("for an exchange", [this] { run(); });
    {
        std::unique_lock lock(start_guard_);
        started_.wait(lock, [&] { return is_started_; });
    }
    if (start_problem_) {
        thread_.join();
        std::rethrow_exception(start_problem_);
    }
    if (options_.comm.loss) options_.comm.loss->when_told([this] { wake(); });
}

exchange_core::~exchange_core() {
    close(true);
}

void exchange_core::refuse_in_flight(exchange_kind kind, std::string_view name) const {
    throw comm_error(errc::usage,
                     fmt::format("{} (rank {} of {} on {}): a request of this name is in flight; wait for it first, or use "
                                 "another name",
                                 describe(kind, name), who_.rank, who_.world_size, who_.host));
}

std::unique_ptr<device_part> exchange_core::mark(exchange_kind kind, std::string_view name, void* stream) try {
    check_process();
    return gpu_.mark(stream);
} catch (error const& problem) {
    throw comm_error(problem.code(), fmt::format("{} (rank {} of {} on {}) in device memory: {}", describe(kind, name), who_.rank,
                                                 who_.world_size, who_.host, problem.what()));
}

void exchange_core::check_process() const {
    if (!is_foreign()) return;
    throw comm_error(errc::usage,
                     fmt::format("exchange (rank {} of {} on {}): {}", who_.rank, who_.world_size, who_.host, forked_words));
}

void exchange_core::check_open() const {
    if (failure_) throw_failure();
    if (closing_) throw comm_error(errc::usage, "the exchange has ended");
}

exchange_clock::duration::rep exchange_core::deadline_from(exchange_clock::time_point submitted) const noexcept {
    return deadline_.count() > 0 ? (submitted + deadline_).time_since_epoch().count() : 0;
}

void exchange_core::enqueue(pending_ptr what, bool& notify) {
    queued_bytes_ += what->bytes;
    // Gathered requests need not wake the thread: it looks when the time is over, or when a thread waits.
    bool const can_wait =
        gathering_ && what->what->kind < exchange_kind::barrier && !what->many && queued_bytes_ < options_.fusion_bytes;
    notify = asleep_ && !can_wait;
    queue_.push_back(std::move(what));
    if (!has_work_.load(std::memory_order_relaxed)) has_work_.store(true, std::memory_order_release);
}

/// `choose` makes the next request of a name out of the last one, which it replaces; both may share what the table keeps.
template <typename Choose>
pending_ptr exchange_core::enter(int set, exchange_kind kind, std::string_view name, Choose&& choose) {
    check_process();
    bool notify = false;
    pending_ptr next;
    note_caller();
    auto const now = exchange_clock::now();
    {
        std::scoped_lock const lock(guard_);
        check_open();
        check_set(set);
        pending_ptr& last = names_.last(set, name);
        if (name_table::is_waiting(last)) refuse_in_flight(kind, name);
        next = choose(last);
        next->set = set;
        next->submitted = now;
        next->deadline.store(deadline_from(now), std::memory_order_relaxed);
        enqueue(next, notify);
    }
    if (notify) work_.notify_one();
    return next;
}

void exchange_core::submit(pending_ptr const& what) {
    enter(what->set, what->what->kind, what->what->name, [&](pending_ptr& last) {
        if (last && is_repetition(*last->what, *what->what)) {
            what->what = last->what;
            what->cache_place = last->cache_place;
        }
        return last = what;
    });
}

pending_ptr exchange_core::submit(single_allreduce const& what) {
    auto gpu = what.io.in.where == memory_kind::device ? mark(exchange_kind::allreduce, what.name, what.stream) : nullptr;
    return enter(what.set, exchange_kind::allreduce, what.name, [&](pending_ptr& last) {
        auto next = next_after(last, last && is_same(*last, what) ? last->what : make_request(what));
        next->one = what.io;
        next->result = what.io.out;
        next->bytes = what.io.in.bytes();
        next->gpu = std::move(gpu);
        return next;
    });
}

pending_ptr exchange_core::start(prepared const& what, void* stream) {
    auto gpu = what.on_device ? mark(exchange_kind::allreduce, what.what->name, stream) : nullptr;
    return enter(what.set, exchange_kind::allreduce, what.what->name, [&](pending_ptr& last) {
        auto next = next_after(last, what.what);
        next->many = what.tensors;
        next->bytes = what.bytes;
        next->gpu = std::move(gpu);
        return next;
    });
}

comm_buffer exchange_core::allocate(std::size_t bytes) {
    check_process();
    std::scoped_lock const lock(guard_);
    check_open();
    if (ranks_ == nullptr) throw comm_error(errc::peer_failed, "the exchange has failed and gives no memory any more");
    return ranks_->allocate(bytes);
}

exchange_core::turn exchange_core::next_turn(exchange_kind kind, int set) {
    check_process();
    constexpr unsigned names = 16;  // few, so that the ranks need not agree on a new one each time
    std::scoped_lock const lock(guard_);
    check_open();
    check_set(set);
    turn out{fmt::format("{}{}.{}", internal_name, to_string(kind), turns_[{kind, set}]++ % names), {}};
    if (auto const& last = names_.last(set, out.name); name_table::is_waiting(last)) out.before = last;
    return out;
}

void exchange_core::wake() {
    hurry_.store(true, std::memory_order_release);
    {
        std::scoped_lock const lock(guard_);
        woken_ = true;
        if (!asleep_) return;
    }
    work_.notify_one();
}

/// A thread that waits counts itself in waiters_ before it reads the state; here the state is written before waiters_ is read. So
/// by the order of changes of waiters_ one of the two sees the other.
void exchange_core::finish(std::span<pending_ptr const> ended) {
    if (waiters_.fetch_add(0, std::memory_order_acq_rel) == 0) return;
    bool waited = false, has_calls = false;
    for (auto const& each : ended) {
        waited = waited || each->waited.load(std::memory_order_relaxed);
        has_calls = has_calls || each->has_calls.load(std::memory_order_relaxed);
    }
    if (!waited && !has_calls) return;
    // A waiting thread reads the state with this lock held.
    { std::scoped_lock const lock(ended_guard_); }
    if (waited) ended_.notify_all();
    if (has_calls) run_calls(ended);
}

void exchange_core::run_calls(std::span<pending_ptr const> ended) {
    std::vector<completion_call> due;
    {
        std::scoped_lock const lock(ended_guard_);
        for (auto const& each : ended) {
            if (each->state.load(std::memory_order_acquire) == pending_request::phase::waiting) continue;  // only handed over
            due.insert(due.end(), each->calls.begin(), each->calls.end());
            each->calls.clear();
        }
    }
    waiters_.fetch_sub(static_cast<int>(due.size()), std::memory_order_relaxed);
    for (auto const& each : due) each.call(each.state);
}

/// Counts itself in waiters_, as a thread that waits does: so requests that nobody wants to be called after cost nothing.
void exchange_core::call_after(pending_request& what, completion_call call) {
    check_process();
    {
        std::scoped_lock const lock(ended_guard_);
        what.calls.push_back(call);
        what.has_calls.store(true, std::memory_order_relaxed);
        waiters_.fetch_add(1, std::memory_order_acq_rel);
        if (what.state.load(std::memory_order_acquire) == pending_request::phase::waiting) return;
        waiters_.fetch_sub(1, std::memory_order_relaxed);
        what.calls.pop_back();
    }
    call.call(call.state);
}

template <typename Until>
bool exchange_core::wait_until(std::span<pending_request* const> all, exchange_clock::time_point until, bool to_its_end,
                               Until&& is_over) {
    if (is_over()) return true;
    check_process();
    bool first = false;
    for (auto* const each : all) first = !each->waited.exchange(true, std::memory_order_relaxed) || first;
    if (first) wake();
    waiters_.fetch_add(1, std::memory_order_acq_rel);
    auto const begin = exchange_clock::now();
    bool const is_caller = to_its_end && std::this_thread::get_id() == caller_;
    std::unique_lock lock(ended_guard_);
    if (is_caller) caller_waits_in_.store(all.front(), std::memory_order_relaxed);
    bool const over =
        until == exchange_clock::time_point::max() ? (ended_.wait(lock, is_over), true) : ended_.wait_until(lock, until, is_over);
    if (is_caller) caller_waits_in_.store(nullptr, std::memory_order_relaxed);
    lock.unlock();
    waiters_.fetch_sub(1, std::memory_order_relaxed);
    counters::add(count.wait_ns, static_cast<std::uint64_t>((exchange_clock::now() - begin).count()));
    return over;
}

/// What it has submitted before it began to wait is seen here, so that it is in the queue no more if the queue is empty. Only after a
/// while: a signal, or a thread that has submitted nothing so far, may end the wait.
bool exchange_core::caller_waits(int set) {
    if (several_callers_.load(std::memory_order_relaxed) || caller_waits_in_.load(std::memory_order_relaxed) == nullptr)
        return false;
    std::scoped_lock const lock(ended_guard_);
    auto const* const in = caller_waits_in_.load(std::memory_order_relaxed);
    return in != nullptr && in->set == set && in->state.load(std::memory_order_acquire) == pending_request::phase::waiting &&
           exchange_clock::now() - in->submitted >= std::chrono::seconds(1) && !has_work_.load(std::memory_order_acquire);
}

bool exchange_core::wait(pending_request& what, exchange_clock::time_point until, bool to_its_end) {
    auto* const one = &what;
    return wait_until({&one, 1}, until, to_its_end,
                      [&] { return what.state.load(std::memory_order_acquire) != pending_request::phase::waiting; });
}

bool exchange_core::wait_any(std::span<pending_request* const> all, exchange_clock::time_point until) {
    return wait_until(all, until, false, [&] {
        return std::any_of(all.begin(), all.end(), [](pending_request const* each) {
            return each->state.load(std::memory_order_acquire) != pending_request::phase::waiting;
        });
    });
}

bool exchange_core::wait_handed(pending_request& what, exchange_clock::time_point until) {
    auto* const one = &what;
    return wait_until({&one, 1}, until, true, [&] {
        return what.handed.load(std::memory_order_acquire) ||
               what.state.load(std::memory_order_acquire) != pending_request::phase::waiting;
    });
}

void exchange_core::close(bool unwinding) noexcept {
    if (is_foreign() || !thread_.joinable()) return;
    if (options_.comm.loss) options_.comm.loss->when_told(nullptr);
    try {
        std::vector<pending_ptr> leaves;
        bool failed = false;
        {
            std::scoped_lock const lock(guard_);
            closing_ = true;
            failed = failure_.has_value();
            duration allowed{30.0};
            if (options_.deadline.count() > 0 && options_.deadline < allowed) allowed = options_.deadline;
            auto const now = exchange_clock::now();
            for (std::size_t set = 0; set < sets_.size(); ++set) {
                auto const& members = sets_[set].members;
                if (sets_[set].is == process_set::standing::removed) continue;
                if (std::find(members.begin(), members.end(), who_.rank) == members.end()) continue;
                auto what = std::make_shared<exchange_request>();
                what->kind = exchange_kind::leave;
                what->name = leave_name;
                auto leave = pending_ptr::make();
                leave->what = std::move(what);
                leave->set = static_cast<int>(set);
                leave->submitted = now;
                leave->deadline =
                    (now + std::chrono::duration_cast<exchange_clock::duration>(allowed)).time_since_epoch().count();
                leaves.push_back(std::move(leave));
            }
            if (!failed && !unwinding) {
                for (auto& each : leaves) queue_.push_back(std::move(each));
                has_work_ = true;
            }
        }
        if (unwinding) abandon_ = true;
        wake();
        thread_.join();
    } catch (std::exception const& trouble) {
        spdlog::error("exchange: {}", trouble.what());
        if (thread_.joinable()) thread_.join();
    }
    try {
        trace.stop();
    } catch (std::exception const& trouble) {
        spdlog::error("timeline: {}", trouble.what());
    }
}

// The loop of an exchange's thread: takes submissions, steps the negotiators, sleeps.

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
        if (options_.comm.loss && options_.comm.loss->is_told())
            options_.comm.loss->throw_if_told(
                fmt::format("exchange (rank {} of {} on {})", who_.rank, who_.world_size, who_.host));
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

// Failure of an exchange: ends its requests and writes the flight recorder's file.

void exchange_core::throw_failure() const {
    throw comm_error(errc::peer_failed, fmt::format("the exchange failed before: {}", failure_->message), failure_->culprits);
}

void exchange_core::fail(std::exception_ptr const& problem) {
    failure_text text;
    try {
        std::rethrow_exception(problem);
    } catch (comm_error const& known) {
        text = {known.code(), known.what(), known.culprits()};
    } catch (error const& known) {
        text = {known.code(), known.what(), {}};
    } catch (std::exception const& foreign) {
        text = {errc::internal, foreign.what(), {}};
    }
    {
        std::scoped_lock const lock(guard_);
        if (!failure_) failure_ = text;
    }
    bool const told = options_.comm.loss && options_.comm.loss->is_told();  // whoever told it says so, too
    if (!abandon_) spdlog::log(told ? spdlog::level::debug : spdlog::level::err, "exchange: {}", text.message);
    dump_flight(text.message, text.culprits);
}

/// `left` is what was under way; what is in the queue joins it.
void exchange_core::fail_what_is_left(std::vector<pending_ptr> left) {
    failure_text why;
    {
        std::scoped_lock const lock(guard_);
        left.insert(left.end(), queue_.begin(), queue_.end());
        queue_.clear();
        why = *failure_;
    }
    for (auto const& each : left) {
        counters::add(count.errors);
        std::string text = why.message;
        if (text.find('"' + each->what->name + '"') == std::string::npos)
            text = fmt::format("{} (rank {} of {} on {}) did not finish: {}", describe(each->what->kind, each->what->name),
                               who_.rank, who_.world_size, who_.host, text);
        set_failed(*each, why.code, text, why.culprits);
    }
    finish(left);
}

void exchange_core::dump_flight(std::string const& reason, std::vector<int> const& culprits) {
    if (options_.flight_folder.empty()) return;
    try {
        flight_dump all = dump();
        all.reason = reason;
        all.culprits = culprits;
        spdlog::error("exchange: the last operations are in {}", write_flight_dump(all, options_.flight_folder));
    } catch (std::exception const& trouble) {
        spdlog::error("exchange: the last operations could not be written: {}", trouble.what());
    }
}

flight_dump exchange_core::dump() const {
    check_process();
    flight_dump all;
    all.rank = who_.rank;
    all.ranks = who_.world_size;
    all.host = who_.host;
    all.records = recorder.records();
    std::scoped_lock const lock(guard_);
    names_.for_in_flight([&](pending_request const& each) {
        std::string_view const name = recorded_name(*each.what);
        if (all.waiting.size() < 100 && !name.empty() && name.front() != internal_name) all.waiting.emplace_back(name);
    });
    std::sort(all.waiting.begin(), all.waiting.end());
    if (failure_) {
        all.reason = failure_->message;
        all.culprits = failure_->culprits;
    }
    return all;
}

}  // namespace muster::detail
