// The MPI library's version: asks the library that this program runs with.
#pragma once

#include <string>

namespace muster {

/// The first line or sentence of what MPI says of itself, for example "Open MPI v4.1.4". May be called without MPI being
/// initialised.
std::string mpi_library_version();

}  // namespace muster
