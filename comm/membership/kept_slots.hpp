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
    std::size_t last = kept::slots;  ///< the newest before them, which the other ranks have too; it must stay until the process has committed
};
/// Empty if there is nothing earlier to go back to: then the ranks begin anew. Pure.
other_history find_other_history(kept_slots const& all, std::uint64_t step);

}  // namespace muster
