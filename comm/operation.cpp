#include "comm/operation.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/communicator_state.hpp"

namespace muster {

namespace detail {

namespace {

constexpr unsigned polls_per_clock_read = 64;  ///< a power of two, as the next
/// … of a rank that yields its processor between polls, or sleeps: each takes longer than the clock.
constexpr unsigned yields_per_clock_read = 16;

/// A waiting rank keeps a processor that it has to itself: it would get it back only a time slice later, and all ranks would wait
/// for that. It yields the processor only when another rank is really late.
constexpr duration patience{0.02};

/// After a wait of this length the next one is expected to be long too, as when a tensor comes in pieces over a slow network:
/// patience is then short.
constexpr duration long_wait{0.001};
constexpr duration short_patience{0.0002};

/// After this long a few microseconds more do not matter, and other processes of this machine may have the processor.
constexpr duration long_patience{0.5};

/// A rank that unwinds an exception waits this long for its operations.
constexpr duration unwinding_deadline{2.0};

/// A wait that goes on is counted this often.
constexpr duration between_counts{0.5};

/// A waiting rank asks this often which ranks are missing.
constexpr duration between_checks{0.2};

/// A rank that is gone may have sent everything: its last messages have this long to arrive.
constexpr duration last_messages{0.1};

struct waiting {
    communicator_state& state;
    ticket which;
    std::string_view what, name;
};

[[noreturn]] void give_up(waiting const& on, errc code, std::string_view why, std::vector<late_rank> const& late) {
    on.state.backend->abandon(on.which);
    std::string const culprits = late.empty()
                                     ? "a rank is late, has failed, or started other collectives. Look at the other ranks"
                                     : fmt::format("waiting for {}. Look at {}", describe_late(late, on.state.backend->hosts()),
                                                   late.size() == 1 ? "that rank" : "those ranks");
    on.state.failed = {fmt::format("{}: {}; {}{}", describe(on.state, on.what, on.name), why, culprits,
                                   code == errc::timeout ? ", or give a longer deadline (MUSTER_COMM_DEADLINE)" : ""),
                       ranks_of(late)};
    throw comm_error(code, on.state.failed->message, on.state.failed->culprits);
}

[[noreturn]] void give_up_by_loss(waiting const& on) {
    on.state.backend->abandon(on.which);
    try {
        on.state.options.loss->throw_if_told(describe(on.state, on.what, on.name));
    } catch (comm_error const&) {
        mark_failed(on.state);
        throw;
    }
    std::abort();  // is_told() was true
}

/// Throws if a rank is known to be gone. Returns true if the collective has finished meanwhile.
bool fail_if_a_rank_is_dead(waiting const& on) {
    auto late = on.state.backend->late_ranks(on.which);
    std::erase_if(late, [](late_rank const& each) { return !each.dead; });
    if (late.empty()) return false;
    auto const begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < last_messages) {
        if (poll(on.state, on.which)) return true;
        ::sched_yield();
    }
    give_up(on, errc::peer_failed, fmt::format("it {}", lost_rank_words), late);
}

}  // namespace

void state_owner::add() noexcept {
    if (state_ != nullptr) ++state_->owners;
}

void state_owner::drop() noexcept {
    // A forked child leaves its parent's communicator as it is: the other ranks would notice its end.
    if (--state_->owners == 0 && !state_->process.is_foreign()) delete state_;
}

void mark_failed(communicator_state& state) noexcept {
    if (state.failed) return;
    try {
        throw;
    } catch (comm_error const& problem) {
        state.failed = {problem.what(), problem.culprits()};
    } catch (std::exception const& problem) {
        state.failed = {problem.what(), {}};
    } catch (...) {
        state.failed = {"an exception without a message", {}};
    }
}

std::string describe(communicator_state const& state, std::string_view what, std::string_view name) {
    std::string const tensor = name.empty() ? std::string{} : fmt::format(" of \"{}\"", name);
    return fmt::format("{}{} ({})", what, tensor, speaker(state.who));
}

void throw_if_failed(communicator_state const& state, std::string_view what, std::string_view name) {
    if (!state.failed) return;
    throw comm_error(errc::peer_failed,
                     fmt::format("{}: the communicator failed before: {}", describe(state, what, name), state.failed->message),
                     state.failed->culprits);
}

void check_process(communicator_state const& state, std::string_view what, std::string_view name) {
    if (state.process.is_foreign())
        throw comm_error(errc::usage, fmt::format("{}: {}", describe(state, what, name), forked_words));
}

bool poll(communicator_state& state, ticket which) {
    try {
        return state.backend->done(which);
    } catch (...) {
        mark_failed(state);
        throw;
    }
}

void wait_for(communicator_state& state, ticket which, duration deadline, std::string_view what, std::string_view name) {
    using clock = std::chrono::steady_clock;
    if (poll(state, which)) return;
    waiting const on{state, which, what, name};
    std::optional<clock::time_point> begin;  // most waits end before the clock is read
    duration next_check = between_checks;
    duration const keeps = state.waited_long ? short_patience : patience;
    state.waited_long = false;
    bool yield = state.yield_at_once, waited_long = false;
    int awaited = -1;  // the last one seen to be late
    duration counted{};
    auto const count = [&](duration waited) {
        state.waits->add_time(waited - counted, awaited);
        counted = waited;
    };
    for (unsigned polls = 1; !poll(state, which); ++polls) {
        if (yield) state.backend->give_way(waited_long);
        if (state.options.loss && state.options.loss->is_told()) give_up_by_loss(on);
        unsigned const between_reads = (yield ? yields_per_clock_read : polls_per_clock_read) - 1;
        if ((polls & between_reads) != 0 && !waited_long) continue;
        auto const now = clock::now();
        if (!begin) begin = now;
        if (state.waits && state.numbers_world)
            if (int const late = state.backend->awaited(which); late >= 0) awaited = late;
        duration const waited = now - *begin;
        if (state.waits && waited - counted > between_counts) count(waited);
        yield = yield || waited > keeps;
        state.waited_long = waited > long_wait;
        waited_long = waited > long_patience;
        if (deadline.count() > 0 && waited > deadline)
            give_up(on, errc::timeout, fmt::format("timed out, not finished within {}", format_duration(deadline)),
                    state.backend->late_ranks(which));
        if (waited > next_check) {
            next_check = waited + between_checks;
            if (fail_if_a_rank_is_dead(on)) return;
        }
    }
    if (!begin || !state.waits) return;
    count(clock::now() - *begin);
    state.waits->add_wait(awaited);
}

}  // namespace detail

operation::operation(operation&& other) noexcept
    : state_(std::move(other.state_)), ticket_(other.ticket_), what_(other.what_), name_(std::move(other.name_)) {}

operation& operation::operator=(operation&& other) noexcept {
    if (this == &other) return *this;
    finish();
    state_ = std::move(other.state_);
    ticket_ = other.ticket_;
    what_ = other.what_;
    name_ = std::move(other.name_);
    return *this;
}

operation::~operation() {
    finish();
}

void operation::finish() noexcept {
    if (!state_) return;
    auto const state = std::move(state_);
    if (state->process.is_foreign()) return;
    try {
        if (state->failed) return state->backend->abandon(ticket_);
        bool const unwinding = std::uncaught_exceptions() > 0;
        detail::wait_for(*state, ticket_, unwinding ? detail::unwinding_deadline : state->options.deadline, what_, name_);
    } catch (std::exception const& problem) {
        try {
            spdlog::error("an operation failed that the program did not wait for: {}", problem.what());
        } catch (...) {  // logging failed too
        }
    }
}

bool operation::done() {
    if (!state_) return true;
    auto const state = state_;
    detail::check_process(*state, what_, name_);
    detail::throw_if_failed(*state, what_, name_);
    try {
        if (!detail::poll(*state, ticket_)) return false;
    } catch (...) {
        state_.reset();
        throw;
    }
    state_.reset();
    return true;
}

std::vector<late_rank> operation::late_ranks() const noexcept {
    if (!state_ || state_->failed || state_->process.is_foreign()) return {};
    return state_->backend->late_ranks(ticket_);
}

void operation::wait() {
    if (state_) wait(state_->options.deadline);
}

bool operation::try_order(void* stream) {
    if (!state_) return true;
    detail::check_process(*state_, what_, name_);
    detail::throw_if_failed(*state_, what_, name_);
    if (!state_->place.device_memory)
        throw comm_error(errc::usage, fmt::format("{}: a stream can only wait for collectives on device memory; use wait()",
                                                  detail::describe(*state_, what_, name_)));
    try {
        return state_->backend->order(ticket_, stream);
    } catch (...) {
        detail::mark_failed(*state_);
        throw;
    }
}

void operation::order(void* stream) {
    auto const begin = std::chrono::steady_clock::now();
    while (!try_order(stream)) {
        ::sched_yield();
        auto const deadline = state_->options.deadline;
        if (deadline.count() <= 0 || std::chrono::steady_clock::now() - begin <= deadline) continue;
        wait(duration{1e-9});  // gives it up
        return;
    }
}

void operation::wait(duration deadline) {
    if (!state_) return;
    detail::check_process(*state_, what_, name_);
    if (state_->failed) detail::throw_if_failed(*state_, what_, name_);
    auto const state = std::move(state_);
    detail::wait_for(*state, ticket_, deadline, what_, name_);
}

}  // namespace muster
