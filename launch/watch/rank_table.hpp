// The table of what every rank is doing, for a run that hangs.
#pragma once

#include <chrono>
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
    int seat = 0;        ///< its number at the start, by which it is asked
    int rank = 0;        ///< in the present generation
    int spare = -1;      ///< a spare's number; below 0 for a rank
    bool waits = false;  ///< the spare has reached the call in which it waits
    std::string host;
    life now = life::running;
    std::string end;          ///< "exited with code 0", if it has ended
    process_sight sight;      ///< for a rank that runs, or that ended only after it was inspected
    std::optional<bool> met;  ///< it has met the other ranks; nothing: not visible
    double age_s = 0;         ///< how long before the table it was seen like this
    bool is_rank() const noexcept { return spare < 0; }
    bool is_seen() const noexcept { return sight.pid > 0 && !sight.leaving && sight.state != 'Z' && sight.state != 'X'; }
};

inline constexpr std::size_t most_single_rows = 16;
inline constexpr duration meeting_patience{30};    ///< until muster notes that ranks have not met
inline constexpr duration meeting_doubt{5};        ///< between two looks at ranks that seem not to have met
inline constexpr duration meeting_check_every{1};  ///< while --start-timeout waits for the first ranks to meet

/// Returns a line for each rank or, for more than `most_single_rows`, one for each group of ranks that do the same, the smallest
/// group first; then a line for each spare. In order of rank.
std::vector<std::string> describe_ranks(std::vector<rank_row> const& rows);

/// Returns what distinguishes one table from another: who does what, without times, last lines and process ids. Pure.
std::string describe_states(std::vector<rank_row> const& rows);

/// Holds the tables that a run has printed: ranks that hang need only one.
class said_tables {
  public:
    /// Returns describe_ranks() or, if `may_refer` and only times have changed since the last table, a line that refers to that
    /// one.
    std::vector<std::string> describe(std::vector<rank_row> const& rows, bool may_refer);

  private:
    std::string last_;  // as describe_states() returns it
    std::chrono::steady_clock::time_point at_;
};

/// Returns what ranks did when they were asked to end: `rows` as inspected, with those of `before`, seen `age_s` earlier, in
/// place of ranks that had ended by then. Leaves out ranks that ended in between and were never seen: their end shows nothing.
/// Empty if no rank was seen. Pure.
std::vector<rank_row> with_last_seen(std::vector<rank_row> rows, std::vector<rank_row> const& before, double age_s);

/// Says which ranks (without spares) get a signal if only those with a handler do: "SIGUSR1 to 2 of 4 ranks: ranks 0-1 have no
/// handler for it". A rank that was not seen counts as having one. Pure.
struct signal_reach {
    std::size_t reached = 0;
    std::string text;
};
signal_reach find_reach(int signal_number, bool to_handlers_only, std::vector<rank_row> const& rows);

/// Returns the ranks to ask more about, by their seats: all, or the first of each group if there are more than
/// `most_single_rows`.
std::vector<int> choose_examples(std::vector<rank_row> const& rows);

/// Sets `met` from what was seen, if some rank has met others by MASTER_PORT or according to `met`; otherwise nothing is known.
void infer_meeting(std::vector<rank_row>& rows);

/// Returns running ranks that have not met the others although some have. At MASTER_PORT a rank that has left its world, and is
/// about to end, looks the same: so only those also in `before`, an earlier list, count; null: this look is the first. Pure.
std::vector<rank_row> find_unmet(std::vector<rank_row> rows, std::vector<rank_row> const* before);

}  // namespace muster
