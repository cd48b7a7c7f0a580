// Mutants of the machine: one row of its table or one guard less. The simulator has to find each.
#pragma once

#include <cstdint>

namespace muster::simulation {

/// A line for each mutant; up to so many schedules are tried, and then the small world. Returns 0 where all are found.
int run_mutants(std::uint64_t count);

}  // namespace muster::simulation
