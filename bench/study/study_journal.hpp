// The journal of a study keeps every run on disk as it ends, so that a study that was killed goes on.
#pragma once

#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// FOLDER/runs.jsonl: a line for the study without its runs, then one for each run; each is written whole and is on disk before
/// the call returns. One process at a time has it open.
class study_journal {
  public:
    /// Opens or makes it. Throws errc::unavailable if another process has it, errc::io, errc::system.
    explicit study_journal(std::string const& folder);

    /// Returns the study so far, with all its runs; nothing for a new one. Removes a last line that is cut off. Throws
    /// errc::invalid_data naming file and line.
    std::optional<study> read();

    /// Starts again with an empty journal.
    void begin(study const& header);
    void add(study_run const& run);

  private:
    void write_line(std::string const& line);
    std::string path_;
    unique_fd file_;
};

/// Returns what a study in `folder`, which may run elsewhere, has written so far; does not lock it. Nothing without a journal.
/// Throws errc::invalid_data.
std::optional<study> read_journal(std::string const& folder);

}  // namespace muster
