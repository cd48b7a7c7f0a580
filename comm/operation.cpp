#include "comm/operation.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <exception>
#include <utility>

#include "base/log.hpp"
#include "comm/comm_error.hpp"
#include "comm/internal/communicator_state.hpp"

namespace muster {

namespace detail {

namespace {

constexpr unsigned polls_per_look_at_clock = 64;

/// A rank with a processor of its own keeps it while it waits: what it gave away it would get back a time slice later, and all
/// ranks would wait for that. Only when another rank is really late it makes room.
constexpr duration patience{0.02};

/// How long the operations of a rank that unwinds an exception are waited for.
constexpr duration unwinding_deadline{2.0};

[[noreturn]] void give_up(communicator_state& state, ticket which, duration deadline, std::string_view what,
                          std::string_view name) {
    state.backend->abandon(which);
    state.failed = fmt::format(
        "{}: not finished within {}; a rank is late, has failed, or started other collectives. Look at the other ranks, "
        "or give a longer deadline",
        describe(state, what, name), format_duration(deadline));
    throw comm_error(errc::timeout, *state.failed);
}

}  // namespace

std::string describe(communicator_state const& state, std::string_view what, std::string_view name) {
    std::string const tensor = name.empty() ? std::string{} : fmt::format(" of \"{}\"", name);
    return fmt::format("{}{} (rank {} of {} on {})", what, tensor, state.who.rank, state.who.world_size, state.who.host);
}

void throw_if_failed(communicator_state const& state, std::string_view what, std::string_view name) {
    if (!state.failed) return;
    throw comm_error(errc::peer_failed,
                     fmt::format("{}: the communicator failed before: {}", describe(state, what, name), *state.failed));
}

bool poll(communicator_state& state, ticket which) {
    try {
        return state.backend->done(which);
    } catch (std::exception const& problem) {
        if (!state.failed) state.failed = problem.what();
        throw;
    }
}

void wait_for(communicator_state& state, ticket which, duration deadline, std::string_view what, std::string_view name) {
    using clock = std::chrono::steady_clock;
    if (poll(state, which)) return;
    auto const begin = clock::now();
    bool yield = state.yield_at_once;
    for (unsigned polls = 1; !poll(state, which); ++polls) {
        if (yield) ::sched_yield();
        if (polls % polls_per_look_at_clock != 0) continue;
        duration const waited = clock::now() - begin;
        yield = yield || waited > patience;
        if (deadline.count() > 0 && waited > deadline) give_up(state, which, deadline, what, name);
    }
}

}  // namespace detail

operation::operation(operation&& other) noexcept
    : state_(std::move(other.state_)), ticket_(other.ticket_), what_(other.what_), name_(std::move(other.name_)) {
    other.state_.reset();
}

operation& operation::operator=(operation&& other) noexcept {
    if (this == &other) return *this;
    finish();
    state_ = std::move(other.state_);
    other.state_.reset();
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
    state_.reset();
    try {
        if (state->failed) return state->backend->abandon(ticket_);
        bool const unwinding = std::uncaught_exceptions() > 0;
        detail::wait_for(*state, ticket_, unwinding ? detail::unwinding_deadline : state->options.deadline, what_, name_);
    } catch (std::exception const& problem) {
        try {
            spdlog::error("an operation that nobody waited for failed: {}", problem.what());
        } catch (...) {  // nothing is left to tell it to
        }
    }
}

bool operation::done() {
    if (!state_) return true;
    auto const state = state_;
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

void operation::wait() {
    if (state_) wait(state_->options.deadline);
}

void operation::wait(duration deadline) {
    if (!state_) return;
    if (state_->failed) detail::throw_if_failed(*state_, what_, name_);
    auto const state = std::move(state_);
    state_.reset();
    detail::wait_for(*state, ticket_, deadline, what_, name_);
}

}  // namespace muster
