// Asks the scheduler about any number of jobs with one command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/process/run_captured.hpp"
#include "launch/jobs/queue/queued_job.hpp"

namespace muster {

enum class queue_kind { slurm, pbs, flux };
std::string_view to_string(queue_kind kind) noexcept;

/// Returns the scheduler whose commands are on PATH. It prefers Slurm to PBS, since a package of qsub and qstat talks to Slurm,
/// unless PBS is preferred (read_allocation.hpp). Flux comes first if it is preferred, else last.
std::optional<queue_kind> find_queue_or_nothing(environment const& variables);

/// Does the same. Throws errc::unavailable if there is no scheduler.
queue_kind find_queue(environment const& variables);

/// Returns the name of the cluster whose Slurm answers here; "" for another scheduler, whose numbers contain their server, and if
/// none answers.
std::string find_cluster(environment const& variables);

/// Returns the command that lists `ids`, also ended ones that the scheduler remembers; without ids, the user's jobs that have not
/// ended.
std::vector<std::string> list_words(queue_kind kind, std::vector<std::string> const& ids, std::string const& user);

/// Runs that command. The answer leaves out a number that the scheduler does not know. Throws errc::unavailable if the scheduler
/// does not answer.
std::vector<queued_job> list_jobs(queue_kind kind, std::vector<std::string> const& ids, environment const& variables);

/// Returns `id`, or the number of the job whose SLUID it is. Throws errc::not_found if Slurm does not know the SLUID.
std::string plain_job_number(std::string const& id, environment const& variables);

/// Returns the command that ends a job.
std::vector<std::string> cancel_words(queue_kind kind, std::string const& id);

/// Returns the scheduler's full description of a job, for people; "" if the scheduler does not know it.
std::string describe_job(queue_kind kind, std::string const& id, environment const& variables);

}  // namespace muster
