#include "comm/nccl/library/nccl_comm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/nccl/library/nccl_library.hpp"

namespace muster::nccl {

namespace {

/// An abort waits this long for a thread that is within a call to NCCL. Calls on non-blocking communicators return at once; one
/// that does not is stuck, and only the abort ends it.
constexpr std::chrono::milliseconds for_calls{1000};

}  // namespace

live_comm::use::use(live_comm& of) : lock_(of.in_use_) {
    if (!of.aborted()) handle_ = of.handle_;
}

std::string live_comm::why() const {
    std::scoped_lock const guard(why_lock_);
    return why_;
}

abort_owner::abort_owner(library const& with) : with_(with), thread_([this] { run(); }) {}

abort_owner::~abort_owner() {
    {
        std::scoped_lock const guard(lock_);
        ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

std::shared_ptr<live_comm> abort_owner::adopt(comm_handle handle, std::shared_ptr<cuda::device const> on) {
    auto const comm = std::make_shared<live_comm>();
    comm->handle_ = handle;
    comm->on_ = std::move(on);
    std::scoped_lock const guard(lock_);
    comms_.push_back(comm);
    return comm;
}

int abort_owner::destroy(live_comm& comm) {
    int code = success;
    {
        live_comm::use const use(comm);
        if (!use) return success;
        cuda::device::scope const current(*comm.on_);
        code = with_.destroy(use.get());
        comm.handle_ = nullptr;
        comm.released_.store(true, std::memory_order_release);
    }
    std::scoped_lock const guard(lock_);
    std::erase_if(comms_, [&](auto const& each) { return each.get() == &comm; });
    return code;
}

void abort_owner::mark(live_comm& comm, std::string const& why) noexcept {
    if (comm.aborted()) return;
    try {
        std::scoped_lock const lock(comm.why_lock_);
        comm.why_ = why;
    } catch (...) {  // out of memory: there is no reason then
    }
    comm.aborted_.store(true, std::memory_order_release);
}

void abort_owner::abort_all(std::string const& why) noexcept {
    {
        std::scoped_lock const guard(lock_);
        for (auto const& comm : comms_) mark(*comm, why);
    }
    changed_.notify_all();
}

void abort_owner::abort(live_comm& comm, std::string const& why) noexcept {
    {
        std::scoped_lock const guard(lock_);
        mark(comm, why);
    }
    changed_.notify_all();
}

bool abort_owner::wait_released(live_comm const& comm, duration deadline) {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, deadline, [&] { return comm.released(); });
}

void abort_owner::run() {
    std::unique_lock guard(lock_);
    while (true) {
        auto const next = std::find_if(comms_.begin(), comms_.end(), [](auto const& each) { return each->aborted(); });
        if (next != comms_.end()) {
            auto const comm = *next;
            comms_.erase(next);
            guard.unlock();
            abort_now(*comm);
            guard.lock();
            comm->released_.store(true, std::memory_order_release);
            changed_.notify_all();
        } else if (ending_) {
            return;
        } else {
            changed_.wait(guard);
        }
    }
}

void abort_owner::abort_now(live_comm& comm) {
    using clock = std::chrono::steady_clock;
    std::unique_lock in_use(comm.in_use_, std::defer_lock);
    auto const begin = clock::now();
    while (!in_use.try_lock() && clock::now() - begin < for_calls) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    comm_handle const handle = comm.handle_;
    if (in_use.owns_lock()) comm.handle_ = nullptr;
    if (handle == nullptr) return;
    try {
        cuda::device::scope const current(*comm.on_);
        if (int const code = with_.abort(handle); code != success && code != in_progress)
            spdlog::debug("ncclCommAbort: {}", with_.error_string(code));
    } catch (std::exception const& problem) {
        spdlog::debug("while aborting a communicator of NCCL's: {}", problem.what());
    }
}

namespace {

using clock = std::chrono::steady_clock;

/// The time between checks of a communicator that is coming up, which takes from some milliseconds to minutes.
constexpr std::chrono::microseconds between_checks{200};

/// A rank that gives up waits this long for the abort, but no longer than for the communicator to come up; then it goes on
/// without it.
constexpr duration for_abort{5.0};

bool is_error(int code) noexcept {
    return code != success && code != in_progress;
}

std::string text_of(library const& with, comm_handle comm, int code) {
    char const* const last = with.last_error(comm);
    std::string text = with.error_string(code);
    if (last != nullptr && *last != '\0') text += fmt::format(": {}", last);
    return text;
}

}  // namespace

nccl_comm nccl_comm::create(std::shared_ptr<runtime> owner, library const& with, std::shared_ptr<cuda::device const> on,
                            unique_id const& id, int rank, int size, std::string speaker, duration deadline) {
    nccl_comm made(std::move(owner), with, std::move(on), std::move(speaker));
    if (deadline.count() > 0) made.for_abort_ = std::min(for_abort, deadline);
    cuda::device::scope const current(*made.on_);
    config how;
    comm_handle handle = nullptr;
    int const code = with.init_rank(&handle, size, id, rank, &how);
    if (handle == nullptr || is_error(code)) {
        std::string const text = text_of(with, nullptr, code);
        if (handle != nullptr) {
            made.live_ = made.owner_->aborts.adopt(handle, made.on_);
            made.owner_->aborts.abort(*made.live_, text);
        }
        throw nccl_error("ncclCommInitRankConfig", code, fmt::format("{}: {}", made.speaker_, text));
    }
    made.live_ = made.owner_->aborts.adopt(handle, made.on_);
    made.wait_ready("the communicator did not come up", deadline);
    made.established_ = true;
    return made;
}

nccl_comm nccl_comm::split(int color, int key, duration deadline) {
    nccl_comm part(owner_, *with_, on_, speaker_);
    part.for_abort_ = for_abort_;
    cuda::device::scope const current(*on_);
    config how;
    auto const handle = std::make_shared<comm_handle>(nullptr);  // an NCCL thread writes it
    try {
        use([&](comm_handle whole) { check(with_->split(whole, color, key, handle.get(), &how), "ncclCommSplit"); });
        wait_ready("the process set did not come up", deadline);
        if (color == no_color) return part;
        if (*handle == nullptr)
            throw nccl_error("ncclCommSplit", success, fmt::format("{}: it made no communicator and told no error", speaker_));
        part.live_ = owner_->aborts.adopt(*handle, on_);
        part.wait_ready("the process set did not come up", deadline);
    } catch (std::exception const& problem) {
        detail::keep_forever(std::shared_ptr<comm_handle>(handle));
        fail(problem.what());
        throw;
    }
    part.established_ = true;
    return part;
}

void nccl_comm::wait_ready(std::string_view what, duration deadline) {
    auto const begin = clock::now();
    while (state() == in_progress) {
        if (deadline.count() > 0 && clock::now() - begin > deadline) {
            std::string const why = fmt::format(
                "{}: {} within {}: timed out; a rank is late, has failed, or cannot be reached (NCCL_DEBUG=INFO "
                "tells what NCCL does, NCCL_SOCKET_IFNAME which network it takes)",
                speaker_, what, format_duration(deadline));
            give_up(why);
            throw comm_error(errc::timeout, why);
        }
        std::this_thread::sleep_for(between_checks);
    }
}

int nccl_comm::state() {
    int code = success;
    int const asked = use([&](comm_handle comm) { return with_->async_error(comm, &code); });
    check(asked, "ncclCommGetAsyncError");
    check(code, "what ncclCommGetAsyncError told");
    return code;
}

void nccl_comm::check(int code, std::string_view call) {
    if (!is_error(code)) return;
    // Within use() the lock is held, so the last error is asked for without the handle.
    std::string const text = fmt::format("{}: {}", speaker_, text_of(*with_, nullptr, code));
    if (code != invalid_argument) fail(fmt::format("{} failed: {}", call, text));
    throw nccl_error(call, code, text);
}

void nccl_comm::throw_aborted() const {
    throw comm_error(errc::peer_failed, fmt::format("{}: the communicator was aborted, and what it was doing has no result: {}",
                                                    speaker_, live_->why()));
}

void nccl_comm::fail(std::string const& why) noexcept {
    if (live_->aborted()) return;  // others may have been made since then
    if (established_)
        owner_->aborts.abort_all(why);
    else
        owner_->aborts.abort(*live_, why);
}

bool nccl_comm::give_up(std::string const& why) noexcept {
    fail(why);
    if (left_behind_) return false;
    try {
        if (owner_->aborts.wait_released(*live_, for_abort_)) return true;
        left_behind_ = true;
        detail::keep_forever(std::shared_ptr<runtime>(owner_));  // its thread must not be waited for when the last owner goes
        spdlog::warn("{}: NCCL did not abort a communicator within {}; it is no longer waited for", speaker_,
                     format_duration(for_abort_));
    } catch (std::exception const&) {  // logging failed too
        left_behind_ = true;
    }
    return false;
}

bool nccl_comm::end(duration deadline) noexcept {
    if (live_->aborted()) return give_up("it was aborted");
    try {
        cuda::device::scope const current(*on_);
        use([&](comm_handle comm) { check(with_->finalize(comm), "ncclCommFinalize"); });
        wait_ready("the communicator did not finish", deadline);
        int const code = owner_->aborts.destroy(*live_);
        if (is_error(code)) spdlog::debug("{}: ncclCommDestroy: {}", speaker_, with_->error_string(code));
        if (!live_->aborted()) return true;
    } catch (std::exception const& problem) {
        try {
            spdlog::warn("a communicator on NCCL did not end in order: {}", problem.what());
        } catch (...) {  // logging failed too
        }
    }
    return give_up("it did not end in order");
}

std::shared_ptr<runtime> runtime::acquire(library const& with) {
    static std::mutex lock;
    static std::map<library const*, std::weak_ptr<runtime>> all;
    std::scoped_lock const guard(lock);
    auto& known = all[&with];
    auto owner = known.lock();
    if (!owner) known = owner = std::make_shared<runtime>(with);
    return owner;
}

unsigned next_epoch() noexcept {
    static std::atomic<unsigned> last{0};
    return ++last;
}

}  // namespace muster::nccl
