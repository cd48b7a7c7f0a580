// The backends of a process that make progress only within calls. Moves them forward together.
#pragma once

#include <sched.h>

#include <atomic>

namespace muster {

/// A rank that waits on one communicator must drive the others too: else one rank waits in the first for a rank that waits in the
/// second for it. A backend is used by one thread at a time, but two of them may be used by two threads; so each has a lock, held
/// during every call; the locks of others are only tried.
class co_progress {
  public:
    co_progress() = default;
    co_progress(co_progress const&) = delete;
    co_progress& operator=(co_progress const&) = delete;

    /// Moves all others of this process forward that nobody is using right now. Thread safe; without waiting.
    void drive_others() noexcept;

  protected:
    ~co_progress() = default;
    /// From now on other threads may call drive(). Call it last in the constructor, when all that drive() needs is there.
    void enter();
    /// From now on no other thread calls drive(). Call it first in the destructor.
    void leave() noexcept;

    /// Moves this one forward; called under its lock.
    virtual void drive() noexcept = 0;

    /// Held by a call.
    class use {
      public:
        explicit use(co_progress& what) noexcept : what_(what) {
            while (what_.busy_.test_and_set(std::memory_order_acquire)) ::sched_yield();  // another drives it: briefly
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
