// A run whose samples `muster top` shows: finds its folder, and reads its samples again when they change.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/samples/run_samples.hpp"

namespace muster {

/// Differs once a file is written anew, also where its time is in whole seconds; the larger is the later. Zeros: there is no file.
struct file_version {
    std::int64_t written_s = 0, written_ns = 0;  ///< by the clock of its file system
    ino_t inode = 0;
    off_t size = 0;
    auto operator<=>(file_version const&) const = default;
};

/// Single-threaded.
class sampled_run {
  public:
    /// `folder`: a run's folder (with run.json) or the session folder of a run that has none.
    explicit sampled_run(std::string folder) : folder_(std::move(folder)) {}

    /// Reads the newest samples of the run, of all its generations, and its record, if they have changed. Throws errc::config, with the owner, for a folder
    /// or a file that this user may not read.
    void look();
    /// Returns the samples that look() has found; nothing: the run has written none.
    std::optional<run_samples> const& samples() const noexcept { return samples_; }
    /// Returns how the run ended, for people, and what to do, as look() has found it; "" while it goes on.
    std::string const& end() const noexcept { return end_; }
    std::string const& folder() const noexcept { return folder_; }

  private:
    void read_newest_samples();
    void read_record();

    std::string folder_;
    std::optional<run_samples> samples_;
    file_version samples_version_;
    file_version record_version_;
    std::string end_;
    std::int64_t leader_ = 0;  ///< the process that leads the run; 0: not known, or on another host
    std::uint64_t leader_start_ticks_ = 0;
};

/// Returns the run that the words of the command line name: a folder; a job, whose run with the newest samples is meant; without words this
/// environment's job or, outside of a job, the newest run that this user has started on this node. Throws errc::usage, errc::not_found, errc::config.
sampled_run find_sampled_run(std::vector<std::string> const& words, environment const& variables);

}  // namespace muster
