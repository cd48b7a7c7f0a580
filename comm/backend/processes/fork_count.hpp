// The count of forks: tells a forked child from the process that made a communicator.
#pragma once

namespace muster::detail {

/// How many forks lie between this process and the first of its program: another number in a child, by pthread_atfork(3). A child has
/// none of its parent's threads, and is no rank. Thread safe, as cheap as reading a variable.
unsigned count_forks() noexcept;

/// Made in one process; in children that were forked since it is foreign.
class process_mark {
  public:
    bool is_foreign() const noexcept { return made_after_ != count_forks(); }

  private:
    unsigned made_after_ = count_forks();
};

/// What such a child has to know. Ends a message.
inline constexpr char const* forked_words =
    "this process was forked from a rank and is none itself; leave collectives to the rank, or start ranks by muster run";

}  // namespace muster::detail
