// Repeated questions about the same jobs: passes over a scheduler that does not answer for a while.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/jobs/queue/queued_job.hpp"

namespace muster {

/// A slurmctld that restarts, or a qstat that times out, is no reason to stop watching a job.
class job_poll {
  public:
    /// Throws errc::unavailable, errc::parse or errc::system where the scheduler does not answer: see list_jobs.
    using question = std::function<std::vector<queued_job>(std::vector<std::string> const& ids)>;

    /// That many failures in a row are too many: at one question in 5 seconds, ten minutes and more.
    static constexpr int most_failures = 120;

    /// `note` learns of the first failure of each row of them.
    job_poll(question ask, std::function<void(std::string const&)> note) : ask_(std::move(ask)), note_(std::move(note)) {}

    /// Nothing if the scheduler did not answer this time. Throws what the question threw when `most_failures` in a row have failed.
    std::optional<std::vector<queued_job>> ask(std::vector<std::string> const& ids);

  private:
    question ask_;
    std::function<void(std::string const&)> note_;
    int failures_ = 0;
};

}  // namespace muster
