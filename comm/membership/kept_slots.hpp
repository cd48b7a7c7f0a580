// Decides which of its kept copies a rank overwrites, and which it forgets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmix/kept_layout.hpp"

namespace muster {

/// A copy in the memory of a rank. kept_state has the memory.
struct kept_slot {
    std::uint64_t number = 0;  ///< of the commit, by all processes that have had this part; 0: never written
    std::uint64_t step = 0;
    bool whole = false;
};
using kept_slots = std::array<kept_slot, kept::slots>;

/// Returns what the next commit may overwrite, in this order: the oldest first, what was never written last, and never `newest`. A held one is to be passed over. Pure.
std::vector<std::size_t> slots_for_commit(kept_slots const& all, std::size_t newest);

/// Commits of another history: those of the step with which a process commits first, and later ones.
struct other_history {
    std::vector<std::size_t> later = {};
    /// The newest before them, which the other ranks have too; it must stay until the process has committed.
    std::size_t last = kept::slots;
};
/// Empty if there is nothing earlier to go back to: then the ranks begin anew. Pure.
other_history find_other_history(kept_slots const& all, std::uint64_t step);

/// Holds what a process knows of its copies from commit to commit.
struct kept_commits {
    std::uint64_t last = 0;            ///< the number of the last one, by all processes that have had this part
    std::size_t newest = kept::slots;  ///< the copy that the next commit must not overwrite
    bool has_committed = false;        ///< this process
    bool operator==(kept_commits const&) const = default;
};
/// Says where a process continues that finds these copies. Pure.
kept_commits continue_from(kept_slots const& found);
/// Begins a commit: returns the copies that it forgets, which are of another history. Of `all`, only the first commit of a process needs to know which are
/// whole, and only if any of them `is_later`. Pure.
std::vector<std::size_t> begin_commit(kept_commits& its, kept_slots const& all, std::uint64_t step);
bool is_later(kept_slot const& one, std::uint64_t step);
/// Ends it: this copy has it. Returns its number.
std::uint64_t end_commit(kept_commits& its, std::size_t which);

}  // namespace muster
