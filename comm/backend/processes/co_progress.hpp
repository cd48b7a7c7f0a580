// The backends of a process that make progress only within calls. Moves them forward together.
#pragma once

#include <sched.h>

#include <atomic>

namespace muster {

/// A rank that waits on one communicator must drive the others too: otherwise two ranks may wait for each other in different
/// ones. One thread at a time uses a backend, but two threads may use two backends. So each backend has a lock: its own calls
/// hold it, and others only try it.
class co_progress {
  public:
    co_progress() = default;
    co_progress(co_progress const&) = delete;
    co_progress& operator=(co_progress const&) = delete;

    /// Moves all others of this process forward that nobody is using right now. Does not wait. Thread safe.
    void drive_others() noexcept;

  protected:
    ~co_progress() = default;
    /// Lets other threads call drive() from now on. Call it last in the constructor, when all that drive() needs is there.
    void enter();
    /// Keeps other threads from calling drive() from now on. Call it first in the destructor.
    void leave() noexcept;

    /// Moves this one forward. The caller holds its lock.
    virtual void drive() noexcept = 0;

    /// Holds the lock during a call.
    class use {
      public:
        explicit use(co_progress& what) noexcept : what_(what) {
            while (what_.busy_.test_and_set(std::memory_order_acquire)) ::sched_yield();  // another thread drives it, briefly
        }
        use(use const&) = delete;
        use& operator=(use const&) = delete;
        ~use() { what_.busy_.clear(std::memory_order_release); }

      private:
        co_progress& what_;
    };

  private:
    std::atomic_flag busy_;
};

}  // namespace muster
