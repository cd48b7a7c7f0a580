// The shared-memory communicators of one process, which move each other forward.
#pragma once

#include <sched.h>

#include <atomic>

namespace muster::shm {

/// Whoever waits on one communicator must drive the others too: else one rank waits in the first for a rank that waits in the
/// second for it. A backend is used by one thread at a time, but two of them may be used by two threads; so each has a lock, held
/// during every call, and who drives others only tries theirs.
class neighbour {
  public:
    neighbour();
    neighbour(neighbour const&) = delete;
    neighbour& operator=(neighbour const&) = delete;

    /// Moves all others of this process forward that nobody is using right now. Thread safe; without waiting.
    void drive_others() noexcept;

  protected:
    ~neighbour() = default;
    /// From now on no other thread calls drive(). To be called first in the destructor.
    void leave() noexcept;

    /// Moves this one forward; called under its lock.
    virtual void drive() noexcept = 0;

    /// Held by a call.
    class use {
      public:
        explicit use(neighbour& what) noexcept : what_(what) {
            while (what_.busy_.test_and_set(std::memory_order_acquire)) ::sched_yield();  // another drives it: briefly
        }
        use(use const&) = delete;
        use& operator=(use const&) = delete;
        ~use() { what_.busy_.clear(std::memory_order_release); }

      private:
        neighbour& what_;
    };

  private:
    std::atomic_flag busy_;
};

}  // namespace muster::shm
