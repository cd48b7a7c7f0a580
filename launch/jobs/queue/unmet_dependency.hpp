// Jobs of --after that have ended in another way than it waits for. Schedulers do not say which one that is, and Slurm 22.05 takes one that it has forgotten as
// one that ended as wanted.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "jobscripts/script_request.hpp"

namespace muster {

/// Of jobs that the scheduler has forgotten. Throws errc::usage where the record of one says that it has ended otherwise; prints a note about those of
/// which nothing says how they ended. Does nothing where the scheduler does not answer.
void check_forgotten_jobs(script_request const& request, environment const& variables);

/// After a refusal: "; job 12_3 has ended: FAILED, exit code 4; so --after ok:12 cannot come true: …"; "": no job of --after is why.
std::string unmet_dependency(script_request const& request, environment const& variables);

}  // namespace muster
