// Tells the variables of the PMIx library's clients before its server has started.
#pragma once

#include <string_view>

#include "base/environment.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

/// Whether set_client_variables knows what this library's PMIx_server_setup_fork sets: in version 4.2, as long as nobody has chosen
/// the library's parts (`variables` have no PMIX_MCA_*).
bool knows_client_variables(std::string_view library_version, environment const& variables);

/// What PMIx_server_setup_fork would set for `rank` if the server listened at `port` of 127.0.0.1. The names of the library's parts
/// are a client's to choose from: it tells the server which it took.
void set_client_variables(job const& description, int rank, int port, std::string_view library_version, environment& variables);

}  // namespace muster::pmix
