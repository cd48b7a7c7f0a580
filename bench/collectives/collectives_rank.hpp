// `muster-bench collectives-rank`: runs one of muster's ranks in a comparison of collectives.
#pragma once

#include <string>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const collectives_rank_row;

/// `collectives-rank FOLDER NAME BACKEND NODES MEMORY`: speaks as bench/peers/mpi_collectives.c does, over the named backend, on
/// the same number of pretended nodes, with tensors in plain, allocated or device memory; besides that `bound BYTES` measures this core's
/// memory while the other ranks do the same, and answers microseconds of a memcpy and of a triad of that size. Started by
/// muster-bench collectives, not by people.
int collectives_rank(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
