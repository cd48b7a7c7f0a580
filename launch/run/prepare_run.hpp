// Prepares a run, whichever process will start its ranks.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/ranks/rank_stream.hpp"
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

/// Returns what precedes each line of a rank: "[node1:3] " and the time, as requested; in a run that may start again "[node1:3
/// g1] ", with its `generation`, else below 0. A world of one that no others join needs no whole lines. `spare`: the number of a
/// process that is not yet a rank ("[node1:spare 0 g1] "), else below 0. Pure.
line_format output_format(run_options const& options, identity const& who, int generation, int spare = -1);

}  // namespace muster
