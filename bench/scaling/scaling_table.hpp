// The scaling table: computes its rows from the runs of a study and prints them.
#pragma once

#include <string>
#include <vector>

#include "bench/scaling/study.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

/// One number of ranks. Times are medians over the repetitions; a run's own numbers are defined in train_record.hpp.
struct scaling_row {
    int ranks = 1;
    summary train_s;                           ///< all epochs' training, first step included
    summary images_per_s;                      ///< after the first step
    double speedup = 1;                        ///< median train_s of the base row / median train_s of this row
    double speedup_low = 1, speedup_high = 1;  ///< from the ends of both intervals: wider than either confidence
    double efficiency = 1;                     ///< speedup * base ranks / ranks
    summary accuracy;                          ///< of the last epoch, 0 to 1
    double startup_s = 0, first_step_s = 0, compute_s = 0, allreduce_wait_s = 0, loader_wait_s = 0, test_s = 0, wall_s = 0;
    bool oversubscribed = false;
    bool simulated = false;
};

/// In order of ranks; the first is the base of every speed-up. Pure.
std::vector<scaling_row> scaling_rows(study const& results);

/// "oversubscribed: 4 ranks on 2 cores", "simulated", both, or "".
std::string scaling_note(scaling_row const& row, int cores);

/// The table as text, with a line that says what the base and the intervals are.
std::string scaling_text(study const& results);

/// "0.52 to 0.61 (75% CI)": with as many digits as the width of the interval deserves.
std::string format_spread(summary const& value, double unit = 1);

/// Three significant digits, plain notation, thousands without separators.
std::string format_value(double value);

}  // namespace muster
