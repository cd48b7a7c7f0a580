// The failed runs of a study: the reasons, with the last words of their output.
#pragma once

#include <filesystem>
#include <string>

#include "bench/study/study.hpp"

namespace muster {

/// Returns the last line that the failed rank wrote, as the launcher's last report quotes it, else the report's first line, else the last line of
/// the output that is not blank or srun's; without the launcher's tag, cut at 160 bytes, control characters escaped. "" if there is no such line.
/// Pure.
std::string last_words(std::string_view output);

/// Returns "exit code 3: the dog ate it; see runs/0002-2-ranks.txt" (a path within the study's folder). Pure.
std::string failure_of(study_run const& run);

/// Returns "failed: exit code 3: …", "took longer than 1 s; …", "interrupted by signal 2; …"; "" if it ended well. Pure.
std::string outcome_of(study_run const& run);

/// Returns the end of a file, each line after a line feed and two blanks: from the launcher's last report of a failed rank on, if it is among
/// the last 40 lines, else the last 12. "" if it cannot be read.
std::string last_lines(std::filesystem::path const& file);

/// Returns, for each number of ranks, the end of the output of its first failed run; "" if none failed. `folder` is the study's.
std::string failures_text(study const& results, std::filesystem::path const& folder);

}  // namespace muster
