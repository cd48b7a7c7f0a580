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
    int spare = -1;      ///< of one that is no rank yet: its number; else below 0
    bool waits = false;  ///< … and it has come to where it waits
    std::string host;
    life now = life::running;
    std::string end;          ///< "exited with code 0", of one that has ended
    process_sight sight;      ///< of one that runs, or that has ended only after it was looked at
    std::optional<bool> met;  ///< it has met the other ranks; nothing: that cannot be seen
    double age_s = 0;         ///< how long before the moment of the table it was seen so
    bool is_rank() const noexcept { return spare < 0; }
    bool is_seen() const noexcept { return sight.pid > 0 && !sight.leaving && sight.state != 'Z' && sight.state != 'X'; }
};

inline constexpr std::size_t most_single_rows = 16;
inline constexpr duration meeting_patience{30};    ///< until the user learns that ranks have not met
inline constexpr duration meeting_doubt{5};        ///< from one look at ranks that seem not to have met to the next
inline constexpr duration meeting_check_every{1};  ///< while --start-timeout waits for the first to meet

/// A line for each rank, or where there are more than `most_single_rows` one for each group of ranks that do the same, the smallest
/// group first, and behind them a line for each spare. In order of rank.
std::vector<std::string> describe_ranks(std::vector<rank_row> const& rows);

/// What makes one table other than another: who does what, without times, what was written last, and process ids. Pure.
std::string describe_states(std::vector<rank_row> const& rows);

/// The tables that a run has printed: one is enough of ranks that hang.
class said_tables {
  public:
    /// As describe_ranks(); or, where `may_refer` and nothing but times has changed since the last one, a line that refers to it.
    std::vector<std::string> describe(std::vector<rank_row> const& rows, bool may_refer);

  private:
    std::string last_;  // as describe_states() tells it
    std::chrono::steady_clock::time_point at_;
};

/// What ranks did when they were asked to end: `rows` as they were when looked at, with those of `before` in place of ranks that had ended by then, seen
/// `age_s` before these. Without ranks that ended in between and were never seen: how the request ended them shows nothing. Empty if no rank is seen. Pure.
std::vector<rank_row> with_last_seen(std::vector<rank_row> rows, std::vector<rank_row> const& before, double age_s);

/// Which ranks (spares are not counted) get a signal, if only those that have a handler for it do: "SIGUSR1 to 2 of 4 ranks: ranks 0-1 have no handler for it". One that is
/// not seen is taken to have one. Pure.
struct signal_reach {
    std::size_t reached = 0;
    std::string text;
};
signal_reach find_reach(int signal_number, bool to_handlers_only, std::vector<rank_row> const& rows);

/// The ranks to ask more about, by their seats: all, or of more than `most_single_rows` the first of each group.
std::vector<int> choose_examples(std::vector<rank_row> const& rows);

/// Fills in `met` from what was seen, where some rank has met others by MASTER_PORT or as `met` says already; else nothing is known.
void infer_meeting(std::vector<rank_row>& rows);

/// Those that run and have not met the others, of which some have met. At MASTER_PORT a rank that has left its world, and is about to end,
/// looks the same: so only those count that the list `before`, of an earlier look, has too; null: this look is the first. Pure.
std::vector<rank_row> find_unmet(std::vector<rank_row> rows, std::vector<rank_row> const* before);

}  // namespace muster
