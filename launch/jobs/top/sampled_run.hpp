// A run whose samples `muster top` shows: finds its folder, and reads its samples.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "launch/samples/run_samples.hpp"

namespace muster {

class sampled_run {
  public:
    /// `folder`: a run's folder (with run.json) or the session folder of a run that has none.
    explicit sampled_run(std::string folder) : folder_(std::move(folder)) {}

    /// Reads the newest samples of the run, of all its generations, and its record. Throws errc::config, with the owner, for a folder or a file that this
    /// user may not read.
    void look();
    /// Returns the samples that look() has found; nothing: the run has written none.
    std::optional<run_samples> const& samples() const noexcept { return samples_; }
    /// Returns how the run ended, for people, and what to do, as look() has found it; "" while it goes on.
    std::string const& end() const noexcept { return end_; }
    std::string const& folder() const noexcept { return folder_; }

  private:
    std::string folder_;
    std::optional<run_samples> samples_;
    std::string end_;
};

/// Returns the run that the words of the command line name: a folder; a job, whose run on this node or with the newest samples is meant; without words this
/// environment's job or, outside of a job, the newest run that this user has started on this node. Throws errc::usage, errc::not_found, errc::config.
sampled_run find_sampled_run(std::vector<std::string> const& words, environment const& variables);

}  // namespace muster
