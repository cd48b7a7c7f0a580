#include "comm/exchange/exchange_handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/exchange/core/exchange_core.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse_empty() {
    throw comm_error(errc::usage, "this prepared group is empty; make it by exchange::prepare");
}

}  // namespace

prepared_group::prepared_group() noexcept = default;
prepared_group::prepared_group(prepared_group&& other) noexcept = default;
prepared_group& prepared_group::operator=(prepared_group&& other) noexcept = default;
prepared_group::~prepared_group() = default;

prepared_group::prepared_group(std::shared_ptr<detail::exchange_core> core, std::unique_ptr<detail::prepared const> what) noexcept
    : core_(std::move(core)), what_(std::move(what)) {}

exchange_handle prepared_group::start(void* stream) {
    if (!what_) refuse_empty();
    auto const started = core_->start(*what_, stream);
    return {*started, core_};
}

std::string const& prepared_group::name() const {
    if (!what_) refuse_empty();
    return what_->what->name;
}

std::size_t prepared_group::tensors() const noexcept {
    return what_ ? what_->tensors->size() : 0;
}

std::size_t prepared_group::bytes() const noexcept {
    return what_ ? what_->bytes : 0;
}

using detail::exchange_clock;
using detail::pending_ptr;
using detail::pending_request;

namespace {

/// The thread of the exchange ends requests at their deadlines, but it reads the clock only now and then, and it reports to the
/// other ranks first.
constexpr std::chrono::seconds slack{10};

bool has_result(pending_request const* what) noexcept {
    return what != nullptr && what->state.load(std::memory_order_acquire) == pending_request::phase::done;
}

exchange_clock::time_point from_now(duration time) {
    return exchange_clock::now() + std::chrono::duration_cast<exchange_clock::duration>(time);
}

}  // namespace

exchange_handle::exchange_handle(pending_request& what, std::shared_ptr<detail::exchange_core> core) noexcept
    : what_(&what), core_(std::move(core)) {
    pending_ptr::hold(what_);
}

exchange_handle::exchange_handle(exchange_handle const& other) noexcept : what_(other.what_), core_(other.core_) {
    pending_ptr::hold(what_);
}

void exchange_handle::release() noexcept {
    pending_ptr::release(what_);
}

bool exchange_handle::poll() const noexcept {
    // It never ends in a forked child; wait() says so.
    return !what_ || what_->state.load(std::memory_order_acquire) != pending_request::phase::waiting || core_->is_foreign();
}

void exchange_handle::throw_if_failed() const {
    if (what_->state.load(std::memory_order_acquire) == pending_request::phase::failed)
        throw comm_error(what_->code, what_->fault, what_->culprits);
}

template <typename Wait>
void exchange_handle::wait_by(Wait&& wait) const {
    for (;;) {
        // Another thread may shorten the deadline meanwhile.
        auto const deadline = what_->deadline.load();
        auto const until = deadline == 0 ? exchange_clock::time_point::max()
                                         : exchange_clock::time_point(exchange_clock::duration(deadline)) + slack;
        if (wait(until)) return throw_if_failed();
        if (what_->deadline.load() == deadline)
            throw comm_error(errc::timeout, fmt::format("{} ({}): timed out: the deadline has passed and the exchange's thread "
                                                        "does not answer; it hangs in a call of its backend ({})",
                                                        describe(what_->what->kind, what_->what->name), speaker(core_->who()),
                                                        core_->backend()));
    }
}

void exchange_handle::wait() const {
    if (!what_) return;
    wait_by([&](exchange_clock::time_point until) { return core_->wait(*what_, until, true); });
}

void exchange_handle::order(void* stream) const {
    if (!what_) return;
    // Before the request has ended, the exchange's thread takes at most the event of its submission from it.
    if (!what_->gpu)
        throw comm_error(errc::usage, fmt::format("{} ({}): a stream can only wait for tensors in device memory; use wait()",
                                                  describe(what_->what->kind, what_->what->name), speaker(core_->who())));
    wait_by([&](exchange_clock::time_point until) { return core_->wait_handed(*what_, until); });
    if (!what_->handed.load(std::memory_order_acquire)) return;  // the device had nothing to do for it
    cuda::device const& on = *what_->gpu->on;
    cuda::device::scope const current(on);
    cuda::check(on.with(),
                on.with().stream_wait_event(static_cast<cuda::stream_handle>(stream), what_->gpu->finished->get().handle, 0),
                "cuStreamWaitEvent");
}

void exchange_handle::bring_forward(duration deadline) const noexcept {
    if (!what_ || deadline.count() <= 0) return;
    auto const until = from_now(deadline).time_since_epoch().count();
    auto known = what_->deadline.load();
    while ((known == 0 || until < known) && !what_->deadline.compare_exchange_weak(known, until)) {
    }
}

void exchange_handle::wait(duration deadline) const {
    bring_forward(deadline);
    wait();
}

void exchange_handle::wait_all(std::span<exchange_handle const* const> all, duration deadline) {
    for (auto const* each : all) each->bring_forward(deadline);
    std::exception_ptr first;
    for (auto const* each : all) {
        try {
            each->wait();
        } catch (...) {
            if (!first) first = std::current_exception();
        }
    }
    if (first) std::rethrow_exception(first);
}

std::optional<std::size_t> exchange_handle::wait_any(std::span<exchange_handle const* const> all, duration at_most) {
    if (all.empty()) throw comm_error(errc::usage, "there are no requests to wait for; give one at least");
    auto const ended = [&]() -> std::optional<std::size_t> {
        auto const found = std::find_if(all.begin(), all.end(), [](exchange_handle const* each) { return each->poll(); });
        if (found == all.end()) return std::nullopt;
        return static_cast<std::size_t>(found - all.begin());
    };
    if (auto const at_once = ended()) return at_once;
    std::vector<pending_request*> requests;
    auto const& core = all.front()->core_;
    for (auto const* each : all) {
        if (each->core_ != core)
            throw comm_error(errc::usage, "the requests are of several exchanges; wait for any of one exchange's at a time");
        requests.push_back(each->what_);
    }
    core->wait_any(requests, at_most.count() > 0 ? from_now(at_most) : exchange_clock::time_point::max());
    return ended();
}

void exchange_handle::then(void (*call)(void*), void* state) const {
    if (!what_) return call(state);
    core_->call_after(*what_, {call, state});
}

bool exchange_handle::wait_for(duration at_most, bool to_its_end) const {
    return !what_ || core_->wait(*what_, from_now(at_most), to_its_end);
}

tensor_view exchange_handle::result() const noexcept {
    return has_result(what_) ? what_->result : tensor_view{};
}

std::span<std::int64_t const> exchange_handle::rows() const noexcept {
    return has_result(what_) ? std::span<std::int64_t const>(what_->rows) : std::span<std::int64_t const>{};
}

tensor_view exchange_handle::result_of(std::size_t index) const noexcept {
    if (!has_result(what_)) return {};
    if (index < what_->parts.size()) return what_->parts[index].view;
    return index == 0 ? what_->result : tensor_view{};
}

std::span<std::int64_t const> exchange_handle::rows_of(std::size_t index) const noexcept {
    if (!has_result(what_)) return {};
    if (index < what_->parts.size()) return what_->parts[index].rows;
    return index == 0 ? rows() : std::span<std::int64_t const>{};
}

int exchange_handle::number() const noexcept {
    return has_result(what_) ? what_->number : 0;
}

}  // namespace muster
