// The pace at which a waiting rank polls: it yields its processor first, then naps for longer and longer.
#pragma once

namespace muster::shm {

/// Tells the processor that this is a loop that waits.
inline void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

class wait_pace {
  public:
    /// A wait begins anew with every step forward.
    void restart() noexcept { yields_ = 0; }

    /// To be called after a poll in vain. `crowded`: ranks share processors. `waited_long`: on a busy machine so many yields
    /// would take minutes.
    void give_way(bool crowded, bool waited_long) noexcept;

    /// Whether it will go on to yield, or to naps of the shortest length, for a while.
    bool is_short() const noexcept;

  private:
    unsigned yields_ = 0;
};

}  // namespace muster::shm
