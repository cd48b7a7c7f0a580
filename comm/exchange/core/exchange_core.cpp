#include "comm/exchange/core/exchange_core.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.hpp"
#include "base/process/start_thread.hpp"
#include "base/trace/rank_file.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/backend_table.hpp"
#include "comm/exchange/core/begin_and_end.hpp"

namespace muster::detail {

namespace {

using namespace std::chrono_literals;

/// Returns the options of the communicator for negotiation, which goes through host memory wherever the tensors lie.
exchange_options for_negotiation(exchange_options options) {
    options.comm.deadline = options.deadline;
    options.comm.memory = memory_kind::host;
    return options;
}

/// A backend for device memory is for the lanes, so it is not asked for here.
comm_options host_options(comm_options options) {
    if (!options.backend.empty() && device_row(options.backend).name == options.backend) options.backend.clear();
    return options;
}

bool is_over(pending_request const* what) {
    return what->state.load(std::memory_order_acquire) != pending_request::phase::waiting;
}

}  // namespace

exchange_core::exchange_core(identity const& who, exchange_options const& options)
    : trace(who.rank, who.world_size, who.host, options.generation),
      who_(who),
      options_(for_negotiation(options)),
      deadline_(std::chrono::duration_cast<exchange_clock::duration>(options.deadline)),
      gpu_(options.comm.device, who.local_rank),
      shared_{
          options_, count, recorder, trace, lost_, gpu_, lost_on_device_, waiters_, wait_counts::open(options_.comm.wait_page)},
      sets_(who_),
      negotiators_(shared_, hooks_of_sets()) {
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
                     fmt::format("{} ({}): a request of this name is in flight; wait for it first, or use another name",
                                 describe(kind, name), speaker(who_)));
}

std::unique_ptr<device_part> exchange_core::mark(exchange_kind kind, std::string_view name, void* stream) try {
    check_process();
    return gpu_.mark(stream);
} catch (error const& problem) {
    throw comm_error(problem.code(),
                     fmt::format("{} ({}) in device memory: {}", describe(kind, name), speaker(who_), problem.what()));
}

void exchange_core::check_process() const {
    if (!is_foreign()) return;
    throw comm_error(errc::usage, fmt::format("exchange ({}): {}", speaker(who_), forked_words));
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

/// `choose` makes the next request of a name from the last one, which it replaces; both may share what the table keeps.
template <typename Choose>
pending_ptr exchange_core::enter(int set, exchange_kind kind, std::string_view name, Choose&& choose) {
    check_process();
    bool notify = false;
    pending_ptr next;
    waiters_.note_caller();
    auto const now = exchange_clock::now();
    {
        std::scoped_lock const lock(guard_);
        check_open();
        sets_.check(set);
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
        auto next = next_after(last, request_of(what, last));
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
    sets_.check(set);
    turn out{fmt::format("{}{}.{}", internal_name, to_string(kind), sets_.take_turn(kind, set) % names), {}};
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

template <typename Until>
bool exchange_core::wait_until(std::span<pending_request* const> all, exchange_clock::time_point until, bool to_its_end,
                               Until&& is_over) {
    if (is_over()) return true;
    check_process();
    bool first = false;
    for (auto* const each : all) first = !each->waited.exchange(true, std::memory_order_relaxed) || first;
    if (first) wake();
    auto const begin = exchange_clock::now();
    bool const over = waiters_.wait(*all.front(), until, to_its_end, is_over);
    counters::add(count.wait_ns, static_cast<std::uint64_t>((exchange_clock::now() - begin).count()));
    return over;
}

void exchange_core::call_after(pending_request& what, completion_call call) {
    check_process();
    waiters_.call_after(what, call);
}

bool exchange_core::wait(pending_request& what, exchange_clock::time_point until, bool to_its_end) {
    auto* const one = &what;
    return wait_until({&one, 1}, until, to_its_end, [&] { return is_over(one); });
}

bool exchange_core::wait_any(std::span<pending_request* const> all, exchange_clock::time_point until) {
    return wait_until(all, until, false, [&] { return std::any_of(all.begin(), all.end(), is_over); });
}

bool exchange_core::wait_handed(pending_request& what, exchange_clock::time_point until) {
    auto* const one = &what;
    return wait_until({&one, 1}, until, true, [&] { return what.handed.load(std::memory_order_acquire) || is_over(one); });
}

std::vector<int> exchange_core::members(int set) const {
    check_process();
    std::scoped_lock const lock(guard_);
    return sets_.members(set);
}

std::vector<int> exchange_core::close_set(int set) {
    check_process();
    std::scoped_lock const lock(guard_);
    check_open();
    sets_.check(set);
    std::string in_flight;
    names_.for_in_flight([&](pending_request const& each) {
        if (each.set == set && in_flight.empty()) in_flight = describe(each.what->kind, each.what->name);
    });
    if (!in_flight.empty())
        throw comm_error(errc::usage,
                         fmt::format("process set {} ({}) has requests in flight ({}); wait for them before it is removed", set,
                                     speaker(who_), in_flight));
    return sets_.close(set);
}

void exchange_core::reopen_set(int set) {
    check_process();
    std::scoped_lock const lock(guard_);
    sets_.reopen(set);
}

std::uint64_t exchange_core::count_message(int set, int peer, int tag, bool sends) {
    check_process();
    std::scoped_lock const lock(guard_);
    return sets_.count_message(set, peer, tag, sends);
}

std::string_view exchange_core::device_backend() const {
    check_process();
    std::scoped_lock const lock(guard_);
    return device_backend_;
}

void exchange_core::close(bool unwinding) noexcept {
    if (is_foreign() || !thread_.joinable()) return;
    if (options_.comm.loss) options_.comm.loss->when_told(nullptr);
    try {
        {
            std::scoped_lock const lock(guard_);
            closing_ = true;
            duration allowed{30.0};
            if (options_.deadline.count() > 0 && options_.deadline < allowed) allowed = options_.deadline;
            if (!failure_ && !unwinding) {
                for (int const set : sets_.of_this_rank()) {
                    auto leave = pending_ptr::make_internal(exchange_kind::leave, leave_name, set);
                    auto const until = leave->submitted + std::chrono::duration_cast<exchange_clock::duration>(allowed);
                    leave->deadline = until.time_since_epoch().count();
                    queue_.push_back(std::move(leave));
                }
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

void exchange_core::set_up(communicator ranks) {
    backend_ = ranks.backend();
    why_backend_ = ranks.why_backend();
    check_options(ranks, options_);
    auto places = gather_places(ranks, options_.device_name);
    if (!options_.comm.members.empty()) who_ = among_members(who_, ranks);
    offset = measure_clocks(ranks);
    if (options_.generation == 0 && who_.rank == 0) {
        remove_later_generations("timeline", options_.timeline_folder);
        remove_later_generations("flight", options_.flight_folder);
    }
    if (!options_.timeline_folder.empty()) trace.start(options_.timeline_folder, offset, options_.mark_cycles);
    negotiators_.start(std::move(ranks), std::move(places));
    ranks_ = &negotiators_.ranks();
}

set_negotiators::hooks exchange_core::hooks_of_sets() {
    set_negotiators::hooks calls;
    // This thread sees what the caller submitted before it began to wait: if the queue is empty, it is no longer in it.
    calls.caller_waits = [this](int set) { return waiters_.caller_waits(set) && !has_work_.load(std::memory_order_acquire); };
    calls.forget_turns = [this](int set) {
        std::scoped_lock const lock(guard_);
        sets_.forget_turns(set);
    };
    calls.on_made = [this](std::vector<int> const& members, bool by_members) {
        std::scoped_lock const lock(guard_);
        sets_.add(members, by_members);
    };
    calls.on_removed = [this](int set) {
        std::scoped_lock const lock(guard_);
        sets_.remove(set);
        names_.forget(set);
    };
    calls.on_device = [this](std::string_view backend) {
        std::scoped_lock const lock(guard_);
        device_backend_ = backend;
    };
    return calls;
}

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
                core.negotiators_.give_back(left);
                core.negotiators_.leak();
                static_cast<void>(new (std::nothrow) device_residuals(std::move(core.lost_on_device_)));
            }
            core.negotiators_.clear();
        }
    };
    try {
        ending const at_end{*this, left};
        loop();
    } catch (...) {
        fail(std::current_exception(), !left.empty());
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
    for (auto& each : taken_) negotiators_.submit(std::move(each));
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
            options_.comm.loss->throw_if_told(fmt::format("exchange ({})", speaker(who_)));
        step_result overall;
        bool const hurry = hurry_.exchange(false, std::memory_order_acquire);
        overall.moved = drain();
        auto const now = exchange_clock::now();
        if (negotiators_.step(now, hurry, overall)) break;
        if (overall.moved)
            quiet_since = now;
        else
            pause(overall, quiet_since);
    }
    std::vector<pending_ptr> left;
    negotiators_.give_back(left);
    end_left(left, who_, shared_);
}

/// Waits between two checks of operations under way: at first it only yields the processor, later it sleeps for a fraction of the
/// time that it has waited already, so that it is late by that fraction only.
void exchange_core::pause(step_result const& overall, exchange_clock::time_point quiet_since) {
    if (!overall.busy) {
        std::unique_lock lock(guard_);
        if (std::exchange(woken_, false) || !queue_.empty() || abandon_) return;
        asleep_ = true;
        gathering_ = overall.gathering;
        // There is no predicate: an extra wakeup does no harm.
        work_.wait_until(lock, std::min(overall.wake, exchange_clock::now() + 100ms));
        asleep_ = gathering_ = false;
        woken_ = false;
        return;
    }
    auto const quiet = exchange_clock::now() - quiet_since;
    // All ranks work on the same data, and many backends move it only within calls.
    if (quiet < (overall.data ? 200ms : 200us)) {
        ::sched_yield();
        return;
    }
    std::this_thread::sleep_for(std::clamp<exchange_clock::duration>(quiet / (overall.data ? 256 : 16), 20us, 1ms));
}

void exchange_core::throw_failure() const {
    throw comm_error(errc::peer_failed, fmt::format("the exchange failed before: {}", failure_->message), failure_->culprits);
}

/// `is_awaited`: calls of this process are under way and end with this text, which the program reports: with many ranks one line each is enough.
void exchange_core::fail(std::exception_ptr const& problem, bool is_awaited) {
    failure_text const text = failure_of(problem);
    {
        std::scoped_lock const lock(guard_);
        if (!failure_) failure_ = text;
        is_awaited =
            is_awaited || !queue_.empty() || std::ranges::any_of(taken_, [](auto const& each) { return each != nullptr; });
    }
    bool const told = options_.comm.loss && options_.comm.loss->is_told();  // whoever reported the loss also says so
    if (!abandon_)
        spdlog::log(told         ? spdlog::level::debug
                    : is_awaited ? spdlog::level::info
                                 : spdlog::level::err,
                    "exchange: {}", text.message);
    dump_flight(text.message, text.culprits);
}

/// Fails `left`, which was under way, and what is in the queue.
void exchange_core::fail_what_is_left(std::vector<pending_ptr> left) {
    failure_text why;
    std::erase(taken_, nullptr);
    left.insert(left.end(), taken_.begin(), taken_.end());
    taken_.clear();
    {
        std::scoped_lock const lock(guard_);
        left.insert(left.end(), queue_.begin(), queue_.end());
        queue_.clear();
        why = *failure_;
    }
    fail_left(left, why, who_, shared_);
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
    all.generation = options_.generation;
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
