// The search for a job's ranks among the processes of this node. Names ranks that are missing before a communicator is made.
#pragma once

#include <string>
#include <vector>

#include "comm/backend/processes/process_watch.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// A process that belongs to a rank, by its environment: the rank itself or one that it started.
struct seen_process {
    int rank = 0;
    process_name process;
    process_state state = process_state::unknown;
};

/// All processes of this node, of the caller's user, that belong to the job step of `who`. Reads /proc. Ranks of other nodes
/// are not among them.
std::vector<seen_process> find_rank_processes(identity const& who);

/// `now`, and as gone the ranks that were seen `first` and have no process any more: so ranks that ended are distinguished from ranks of
/// other nodes, which cannot be seen. Pure.
std::vector<seen_process> with_the_gone(std::vector<seen_process> const& first, std::vector<seen_process> now);

/// Why the rendezvous of `who`'s world failed, and which ranks are at fault: those that are stopped or gone, or, where all ranks
/// are on this node, that have no process. Pure. No culprits: nothing suspicious was found.
struct absence {
    std::string text;
    std::vector<int> culprits;
};
absence explain_absence(identity const& who, std::vector<seen_process> const& found);

/// The same at a deadline, from the processes shortly before it, when ranks with the same deadline had not given up yet, and from
/// those now: the ranks that were suspicious then, unless none is now. Pure.
absence explain_absence(identity const& who, std::vector<seen_process> const& before, std::vector<seen_process> const& now);

}  // namespace muster

namespace muster::detail {

// The count of forks: tells a forked child from the process that made a communicator.

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
