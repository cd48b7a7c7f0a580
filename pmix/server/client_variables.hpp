// Tells the variables of the PMIx library's clients before its server has started.
#pragma once

#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

// The variables that Open MPI needs in a rank's environment in addition to PMIX_*.

/// One variable that is set for every rank, and why.
struct mca_default {
    std::string name;
    std::string value;
    std::string_view why;
    bool forced = false;  ///< set whatever the user says: without it the rank does not come up
};

/// The variables that do not depend on the rank. Pure.
std::vector<mca_default> open_mpi_defaults(job const& description);

/// Sets them, and OMPI_COMM_WORLD_*, in a rank's environment. A value that the user or the site set stays, except for the forced
/// ones and the rank's own numbers. Pure.
void set_open_mpi_environment(job const& description, int rank, environment& variables);

/// Returns whether set_client_variables knows what this library's PMIx_server_setup_fork sets: in version 4.2, as long as nobody has chosen
/// the library's parts (`variables` have no PMIX_MCA_*).
bool knows_client_variables(std::string_view library_version, environment const& variables);

/// Sets what PMIx_server_setup_fork would set for `rank` if the server listened at `port` of 127.0.0.1. The names of the library's parts
/// are a client's to choose from: it tells the server which it took.
void set_client_variables(job const& description, int rank, int port, std::string_view library_version, environment& variables);

}  // namespace muster::pmix
