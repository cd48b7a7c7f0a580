// The ranks of a job among the processes of this node, by their environment: for ranks that have not met yet.
#pragma once

#include <string>
#include <vector>

#include "comm/backend/process_watch.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// A process whose environment says that it belongs to a rank: the rank itself or what it started.
struct rank_process {
    int rank = 0;
    process_name process;
    process_state state = process_state::unknown;
};

/// All processes of this node, of the caller's user, that belong to the job step of `who`. Reads /proc. Ranks of other nodes
/// are not among them.
std::vector<rank_process> find_rank_processes(identity const& who);

/// `now`, and as gone whoever was seen `first` and has no process any more: so ranks that fell are told from ranks of other nodes,
/// which cannot be seen. Pure.
std::vector<rank_process> with_the_gone(std::vector<rank_process> const& first, std::vector<rank_process> now);

/// What is to be said when the ranks of `who`'s world did not come together, and which of them are at fault: those that are
/// stopped or gone, or, where all ranks are on this node, that have no process. Pure. No culprits: nothing suspicious was found.
struct absence {
    std::string text;
    std::vector<int> culprits;
};
absence explain_absence(identity const& who, std::vector<rank_process> const& found);

/// The same at a deadline, from a look shortly before it, when ranks with the same deadline had not given up yet, and one now:
/// whoever was suspicious then, unless nobody is now. Pure.
absence explain_absence(identity const& who, std::vector<rank_process> const& before, std::vector<rank_process> const& now);

}  // namespace muster
