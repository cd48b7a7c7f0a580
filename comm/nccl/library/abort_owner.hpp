// The one thread of the process that aborts NCCL's communicators.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "comm/cuda/device.hpp"
#include "comm/nccl/library/nccl_library.hpp"

namespace muster::nccl {

/// A communicator of NCCL's which one thread uses and another may abort. A call to NCCL with it holds a `use`.
class live_comm {
  public:
    /// The handle, kept from being aborted (and so freed) meanwhile; or nothing where it has been marked, is being aborted or is
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

    /// Whether an abort has been asked for: an operation that ends from now on ends without an error and without a result.
    bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }
    std::string why() const;

    /// Whether nothing of it runs any more.
    bool released() const noexcept { return released_.load(std::memory_order_acquire); }

  private:
    friend class abort_owner;
    std::shared_ptr<cuda::device const> on_;
    std::mutex in_use_;  ///< of handle_
    comm_handle handle_ = nullptr;
    std::atomic<bool> aborted_{false};
    std::atomic<bool> released_{false};
    mutable std::mutex why_lock_;  ///< of why_
    std::string why_;
};

/// Knows all communicators of the process. Where one fails all are marked before the first is aborted, since communicators that
/// are aborted one by one while others still run can wait for each other without end; and all are aborted by one thread, since an
/// abort may block. Thread safe.
class abort_owner {
  public:
    explicit abort_owner(library const& with);
    ~abort_owner();  ///< ends the thread, after what it does now; communicators that nobody released stay
    abort_owner(abort_owner const&) = delete;
    abort_owner& operator=(abort_owner const&) = delete;

    /// Takes a communicator (of NCCL's, non-blocking) into its list.
    std::shared_ptr<live_comm> adopt(comm_handle handle, std::shared_ptr<cuda::device const> on);

    /// Has ncclCommDestroy called here, for a communicator that was finalised; nothing if it is marked by now. Returns NCCL's
    /// code.
    int destroy(live_comm& comm);

    /// Marks every communicator of the process as aborted and has them aborted, in the order of adoption. Returns at once.
    void abort_all(std::string const& why) noexcept;

    /// The same for one that nobody else can wait for: one that did not come up.
    void abort(live_comm& comm, std::string const& why) noexcept;

    /// Whether it is released within `deadline`.
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

}  // namespace muster::nccl
