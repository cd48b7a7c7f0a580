// The files that this program holds: the training of the published table, and the peers of comparisons.
#pragma once

#include <span>

#include "base/text.hpp"

namespace muster {

/// Returns published_table.py of examples, mpi_collectives.c (compiled with each MPI found on the machine), oneccl_mpi.h and gloo_collectives.py,
/// as they were when this program was built.
std::span<embedded_text const> peer_files() noexcept;

}  // namespace muster
