#include "comm/exchange/core/exchange_core.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"

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
    thread_ = std::thread([this] { run(); });
    {
        std::unique_lock lock(start_guard_);
        started_.wait(lock, [&] { return is_started_; });
    }
    if (start_problem_) {
        thread_.join();
        std::rethrow_exception(start_problem_);
    }
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
    return gpu_.mark(stream);
} catch (error const& problem) {
    throw comm_error(problem.code(), fmt::format("{} (rank {} of {} on {}) in device memory: {}", describe(kind, name), who_.rank,
                                                 who_.world_size, who_.host, problem.what()));
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
    bool notify = false;
    pending_ptr next;
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
    std::scoped_lock const lock(guard_);
    check_open();
    if (ranks_ == nullptr) throw comm_error(errc::peer_failed, "the exchange has failed and gives no memory any more");
    return ranks_->allocate(bytes);
}

exchange_core::turn exchange_core::next_turn(exchange_kind kind, int set) {
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
bool exchange_core::wait_until(std::span<pending_request* const> all, exchange_clock::time_point until, Until&& is_over) {
    if (is_over()) return true;
    bool first = false;
    for (auto* const each : all) first = !each->waited.exchange(true, std::memory_order_relaxed) || first;
    if (first) wake();
    waiters_.fetch_add(1, std::memory_order_acq_rel);
    auto const begin = exchange_clock::now();
    std::unique_lock lock(ended_guard_);
    bool const over =
        until == exchange_clock::time_point::max() ? (ended_.wait(lock, is_over), true) : ended_.wait_until(lock, until, is_over);
    lock.unlock();
    waiters_.fetch_sub(1, std::memory_order_relaxed);
    counters::add(count.wait_ns, static_cast<std::uint64_t>((exchange_clock::now() - begin).count()));
    return over;
}

bool exchange_core::wait(pending_request& what, exchange_clock::time_point until) {
    auto* const one = &what;
    return wait_until({&one, 1}, until,
                      [&] { return what.state.load(std::memory_order_acquire) != pending_request::phase::waiting; });
}

bool exchange_core::wait_any(std::span<pending_request* const> all, exchange_clock::time_point until) {
    return wait_until(all, until, [&] {
        return std::any_of(all.begin(), all.end(), [](pending_request const* each) {
            return each->state.load(std::memory_order_acquire) != pending_request::phase::waiting;
        });
    });
}

bool exchange_core::wait_handed(pending_request& what, exchange_clock::time_point until) {
    auto* const one = &what;
    return wait_until({&one, 1}, until, [&] {
        return what.handed.load(std::memory_order_acquire) ||
               what.state.load(std::memory_order_acquire) != pending_request::phase::waiting;
    });
}

void exchange_core::close(bool unwinding) noexcept {
    if (!thread_.joinable()) return;
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

}  // namespace muster::detail
