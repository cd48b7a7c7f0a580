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

/// Returns all processes of the caller's user on this node that belong to the job step of `who`; ranks of other nodes are not
/// among them. Reads /proc.
std::vector<seen_process> find_rank_processes(identity const& who);

/// Returns `now` and, as gone, the ranks that were seen `first` and have no process any more. This distinguishes ranks that ended from
/// ranks of other nodes, which cannot be seen. Pure.
std::vector<seen_process> with_the_gone(std::vector<seen_process> const& first, std::vector<seen_process> now);

/// The reason why the rendezvous of `who`'s world failed, and the ranks at fault: those that are stopped or gone or, with all
/// ranks on this node, have no process. No culprits: nothing suspicious was found. Pure.
struct absence {
    std::string text;
    std::vector<int> culprits;
};
absence explain_absence(identity const& who, std::vector<seen_process> const& found);

/// Explains a failure at a deadline from the processes shortly before it, when ranks with the same deadline had not given up yet,
/// and from those now. Blames the ranks that were suspicious before, unless none is now. Pure.
absence explain_absence(identity const& who, std::vector<seen_process> const& before, std::vector<seen_process> const& now);

}  // namespace muster

namespace muster::detail {

// The count of forks distinguishes a forked child from the process that made a communicator.

/// Returns how many forks lie between this process and the first of its program (pthread_atfork(3)), so a child has another number. A
/// child has none of its parent's threads, and is not a rank. Thread safe, as cheap as reading a variable.
unsigned count_forks() noexcept;

/// Marks the process that made it; is foreign in children forked since.
class process_mark {
  public:
    bool is_foreign() const noexcept { return made_after_ != count_forks(); }

  private:
    unsigned made_after_ = count_forks();
};

/// The end of a message to such a child.
inline constexpr char const* forked_words =
    "this process was forked from a rank and is none itself; leave collectives to the rank, or start ranks by muster run";

}  // namespace muster::detail
