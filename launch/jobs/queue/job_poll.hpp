// Repeats a question about jobs, and tolerates a scheduler that does not answer for a while.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/jobs/queue/queued_job.hpp"

namespace muster {

/// Goes on when slurmctld restarts or qstat times out.
class job_poll {
  public:
    /// Throws errc::unavailable, errc::parse or errc::system if the scheduler does not answer: see list_jobs.
    using question = std::function<std::vector<queued_job>(std::vector<std::string> const& ids)>;

    /// Ends the questions after so many failures in a row: at one question in 5 seconds they take ten minutes or more.
    static constexpr int most_failures = 120;

    /// `note` is called for the first of several failures in a row.
    job_poll(question ask, std::function<void(std::string const&)> note) : ask_(std::move(ask)), note_(std::move(note)) {}

    /// Returns nothing if the scheduler did not answer this time. Rethrows what the question threw after `most_failures` failures
    /// in a row.
    std::optional<std::vector<queued_job>> ask(std::vector<std::string> const& ids);

  private:
    question ask_;
    std::function<void(std::string const&)> note_;
    int failures_ = 0;
};

}  // namespace muster
