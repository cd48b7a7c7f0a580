// Finds jobs of --after that have not ended in the way it waits for. Schedulers do not say which job that is, and Slurm 22.05
// treats a job that it has forgotten as one that ended as wanted.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "jobscripts/script_request.hpp"

namespace muster {

/// Checks jobs that the scheduler has forgotten. Throws errc::usage if the record of one says that it has ended otherwise; prints
/// a note about those whose end is not known. Does nothing if the scheduler does not answer.
void check_forgotten_jobs(script_request const& request, environment const& variables);

/// Returns, after a refusal: "; job 12_3 has ended: FAILED, exit code 4; so --after ok:12 cannot come true: …"; "" if no job of
/// --after is the cause.
std::string unmet_dependency(script_request const& request, environment const& variables);

}  // namespace muster
