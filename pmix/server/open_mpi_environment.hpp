// The variables that Open MPI needs in a rank's environment beside PMIX_*.
#pragma once

#include <vector>

#include "base/environment.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

/// One variable that is set for every rank, and why.
struct mca_default {
    std::string name;
    std::string value;
    std::string_view why;
    bool forced = false;  ///< set whatever the user says: without it the rank does not come up
};

/// The variables that do not depend on the rank. Pure.
std::vector<mca_default> open_mpi_defaults(job const& description);

/// Sets them, and OMPI_COMM_WORLD_*, in a rank's environment. A value that the user or the site set stays, but for the forced
/// ones and the rank's own numbers. Pure.
void set_open_mpi_environment(job const& description, int rank, environment& variables);

}  // namespace muster::pmix
