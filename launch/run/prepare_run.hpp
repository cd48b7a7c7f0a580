// Prepares a run, whichever process will start its ranks.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/settings/run_context.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Holds what ranks get, whoever starts them.
struct run_preparation {
    std::vector<identity> ranks;   ///< who each is, with the allocation's name for its host
    std::vector<identity> spares;  ///< those that wait on other nodes; their numbers follow those of the world
    environment variables;         ///< the launcher's, without those of an outer launcher, and with -x
    environment sent_variables;    ///< the variables that go to other nodes and into records (--env-exclude)
    std::string working_dir;       ///< absolute; empty: the launcher's
    python_folders python;         ///< this installation's
    bool lists_workers;            ///< the world is small enough for TF_CONFIG: each rank gets a port
};

/// Prints the mapping's note. Throws errc::usage for a rank of --print-env that the run does not have, and for -x;
/// errc::not_found for --as-horovod in an installation without Python.
run_preparation prepare_run(run_plan const& run);

}  // namespace muster
