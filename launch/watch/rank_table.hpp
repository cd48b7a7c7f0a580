// The table of what every rank is doing, for a run that hangs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "launch/observe/process_sight.hpp"

namespace muster {

/// One rank at the moment of the table.
struct rank_row {
    enum class life { running, ended, silent };
    int rank = 0;
    std::string host;
    life now = life::running;
    std::string end;          ///< "exited with code 0", of one that has ended
    process_sight sight;      ///< of one that runs
    std::optional<bool> met;  ///< it has met the other ranks; nothing: that cannot be seen
};

inline constexpr std::size_t most_single_rows = 16;
inline constexpr duration meeting_patience{30};    ///< until the user learns that ranks have not met
inline constexpr duration meeting_doubt{5};        ///< from one look at ranks that seem not to have met to the next
inline constexpr duration meeting_check_every{1};  ///< while --start-timeout waits for the first to meet

/// A line for each rank, or where there are more than `most_single_rows` one for each group of ranks that do the same, the smallest
/// group first. In order of rank.
std::vector<std::string> describe_ranks(std::vector<rank_row> const& rows);

/// The ranks to ask more about: all, or of more than `most_single_rows` the first of each group.
std::vector<int> choose_examples(std::vector<rank_row> const& rows);

/// Fills in `met` from what was seen, where some rank has met others by MASTER_PORT or as `met` says already; else nothing is known.
void infer_meeting(std::vector<rank_row>& rows);

/// Those that run and have not met the others, of which some have met. At MASTER_PORT a rank that has left its world, and is about to end,
/// looks the same: so only those count that the list `before`, of an earlier look, has too; null: this look is the first. Pure.
std::vector<rank_row> find_unmet(std::vector<rank_row> rows, std::vector<rank_row> const* before);

}  // namespace muster
