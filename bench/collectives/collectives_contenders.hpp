// The jobs of a comparison: starts muster's backends and the libraries of this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/collectives/collectives_job.hpp"
#include "bench/collectives/collectives_plan.hpp"
#include "bench/collectives/collectives_table.hpp"

namespace muster {

struct contender {
    collectives_job_facts facts;
    std::unique_ptr<collectives_job> job;
};

/// Compiles the MPI peers with each compiler that is found and starts everything that the plan names; what cannot be started is
/// left out, with a note on standard error. `folder` is for their files.
std::vector<contender> start_contenders(collectives_plan const& what, int ranks, std::string const& folder,
                                        environment const& variables);

}  // namespace muster
