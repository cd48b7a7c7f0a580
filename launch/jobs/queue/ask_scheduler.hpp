// Questions to the scheduler about jobs: one command for any number of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/process/run_captured.hpp"
#include "launch/jobs/queue/queued_job.hpp"

namespace muster {

enum class queue_kind { slurm, pbs, flux };
std::string_view to_string(queue_kind kind) noexcept;

/// The scheduler whose commands are on PATH. Of both Slurm and PBS it is Slurm, since there is a package of qsub and qstat that talk to
/// Slurm, unless PBS is preferred (read_allocation.hpp). Flux comes before them where it is preferred, too, else behind them. Throws errc::unavailable where there are none.
queue_kind find_queue(environment const& variables);

/// The name of the cluster whose Slurm answers here; "" for another scheduler, whose numbers have their server in them, and where none answers.
std::string find_cluster(environment const& variables);

/// The command that lists `ids`, ended ones too while the scheduler remembers them; without ids the user's own that have not ended.
std::vector<std::string> list_words(queue_kind kind, std::vector<std::string> const& ids, std::string const& user);

/// Runs it. A number that the scheduler does not know is not among the answers. Throws errc::unavailable if the scheduler does not answer.
std::vector<queued_job> list_jobs(queue_kind kind, std::vector<std::string> const& ids, environment const& variables);

/// `id`, or the number of the job whose SLUID it is. Throws errc::not_found if Slurm does not know that.
std::string plain_job_number(std::string const& id, environment const& variables);

/// The command that ends a job.
std::vector<std::string> cancel_words(queue_kind kind, std::string const& id);

/// What the scheduler itself shows of a job in full, for people; "" if it does not know it.
std::string describe_job(queue_kind kind, std::string const& id, environment const& variables);

}  // namespace muster
