#include "comm/nccl/library/abort_owner.hpp"

#include <algorithm>
#include <chrono>

#include "base/log.hpp"

namespace muster::nccl {

namespace {

/// How long a thread that is within a call to NCCL is waited for. Calls on non-blocking communicators return at once; one that
/// does not is stuck, and only the abort gets it out.
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
    } catch (...) {  // out of memory: without a reason then
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

}  // namespace muster::nccl
