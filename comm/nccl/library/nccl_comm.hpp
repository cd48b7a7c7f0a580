// An NCCL communicator with an owner thread for aborts: it is made, split, asked and ended with deadlines.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "comm/cuda/device.hpp"
#include "comm/nccl/library/nccl_library.hpp"

namespace muster::nccl {

// One thread of the process aborts NCCL's communicators.

/// An NCCL communicator which one thread uses and another may abort. A call to NCCL with it holds a `use`.
class live_comm {
  public:
    /// Holds the handle, which cannot be aborted (and so freed) meanwhile; nothing if it has been marked, is being aborted or is
    /// released.
    class use {
      public:
        explicit use(live_comm& of);
        explicit operator bool() const noexcept { return handle_ != nullptr; }
        comm_handle get() const noexcept { return handle_; }

      private:
        std::unique_lock<std::mutex> lock_;
        comm_handle handle_ = nullptr;
    };

    /// Returns whether an abort has been asked for: an operation that ends from then on ends without an error and without a
    /// result.
    bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }
    std::string why() const;

    /// Returns whether nothing of it runs any more.
    bool released() const noexcept { return released_.load(std::memory_order_acquire); }

  private:
    friend class abort_owner;
    std::shared_ptr<cuda::device const> on_;
    std::mutex in_use_;  ///< guards handle_
    comm_handle handle_ = nullptr;
    std::atomic<bool> aborted_{false};
    std::atomic<bool> released_{false};
    mutable std::mutex why_lock_;  ///< guards why_
    std::string why_;
};

/// Knows all communicators of the process. If one fails, all are marked before the first is aborted, since communicators that are
/// aborted one by one while others still run can wait for each other without end. One thread aborts them all, since an abort may
/// block. Thread safe.
class abort_owner {
  public:
    explicit abort_owner(library const& with);
    ~abort_owner();  ///< ends the thread after its present work; communicators that nobody released stay
    abort_owner(abort_owner const&) = delete;
    abort_owner& operator=(abort_owner const&) = delete;

    /// Adds an NCCL communicator, which is non-blocking, to its list.
    std::shared_ptr<live_comm> adopt(comm_handle handle, std::shared_ptr<cuda::device const> on);

    /// Calls ncclCommDestroy for a communicator that was finalised, unless it is marked by now. Returns NCCL's code.
    int destroy(live_comm& comm);

    /// Marks every communicator of the process as aborted and has them aborted, in the order of adoption. Returns at once.
    void abort_all(std::string const& why) noexcept;

    /// The same for one communicator that nobody else can wait for, since it did not come up.
    void abort(live_comm& comm, std::string const& why) noexcept;

    /// Returns whether it is released within `deadline`.
    bool wait_released(live_comm const& comm, duration deadline);

  private:
    void mark(live_comm& comm, std::string const& why) noexcept;
    void run();
    void abort_now(live_comm& comm);

    library const& with_;
    std::mutex lock_;
    std::condition_variable changed_;
    std::vector<std::shared_ptr<live_comm>> comms_;
    bool ending_ = false;
    std::thread thread_;
};

// The state that all NCCL communicators of the process share.

/// Lives as long as its last owner. Thread safe.
struct runtime {
    explicit runtime(library const& with) : aborts(with) {}
    abort_owner aborts;

    /// Returns the process's own one for this library.
    static std::shared_ptr<runtime> acquire(library const& with);
};

/// Returns a number for each communicator made from a job's ranks, counting up; the same on all ranks since all make them in the
/// same order.
unsigned next_epoch() noexcept;

/// Owner of an NCCL communicator. Every wait has a deadline (0: none); after it the communicator is aborted and comm_error
/// (errc::timeout) is thrown; errors of NCCL are nccl_error. Once it has come up, any failure of it aborts all communicators of
/// the process; one that does not come up is aborted alone. `speaker` begins the messages: "rank 1 of 4 on n2". Only one thread
/// uses it.
class nccl_comm {
  public:
    /// Collective over `size` ranks.
    static nccl_comm create(std::shared_ptr<runtime> owner, library const& with, std::shared_ptr<cuda::device const> on,
                            unique_id const& id, int rank, int size, std::string speaker, duration deadline);

    /// Returns a communicator for the ranks that give the same `color`, numbered in the order of `key`; empty for no_color.
    /// Collective over all ranks of this one.
    nccl_comm split(int color, int key, duration deadline);

    nccl_comm(nccl_comm&&) noexcept = default;
    nccl_comm& operator=(nccl_comm&&) = delete;
    /// Does nothing. Without an earlier end() or give_up() NCCL's communicator is left as it is.
    ~nccl_comm() = default;

    explicit operator bool() const noexcept { return live_ != nullptr; }
    library const& with() const noexcept { return *with_; }
    cuda::device const& on() const noexcept { return *on_; }

    /// Calls `body(handle)` while the communicator cannot be aborted. Throws comm_error (errc::peer_failed) with the reason if it
    /// is aborted.
    template <typename Body>
    auto use(Body&& body) {
        live_comm::use const held(*live_);
        if (!held) throw_aborted();
        return body(held.get());
    }

    /// Throws if it is aborted. Call it after an operation has ended, before you trust its result.
    void require_alive() const {
        if (live_->aborted()) throw_aborted();
    }
    bool aborted() const noexcept { return live_->aborted(); }

    /// Returns NCCL's state: success, or in_progress while its last request is being set up. For anything else aborts all
    /// communicators and throws nccl_error.
    int state();

    /// Aborts all communicators and throws nccl_error unless `code` is success or in_progress. An invalid argument only throws:
    /// it harms nothing.
    void check(int code, std::string_view call);

    /// Aborts all communicators of the process for this reason and waits a little for this one. Returns whether it is gone.
    bool give_up(std::string const& why) noexcept;

    /// Collective. Finalises and destroys it; if that fails or takes longer, aborts it. Returns whether it is gone.
    bool end(duration deadline) noexcept;

  private:
    nccl_comm(std::shared_ptr<runtime> owner, library const& with, std::shared_ptr<cuda::device const> on, std::string speaker)
        : owner_(std::move(owner)), with_(&with), on_(std::move(on)), speaker_(std::move(speaker)) {}
    [[noreturn]] void throw_aborted() const;
    void fail(std::string const& why) noexcept;
    void wait_ready(std::string_view what, duration deadline);

    std::shared_ptr<runtime> owner_;
    library const* with_;
    std::shared_ptr<cuda::device const> on_;
    std::string speaker_;
    std::shared_ptr<live_comm> live_;
    duration for_abort_{5.0};
    bool established_ = false;  ///< it came up
    bool left_behind_ = false;  ///< its abort did not end in time
};

}  // namespace muster::nccl
