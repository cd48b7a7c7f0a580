// `cpu_speed exchange`: times named tensors through an exchange, compared with one MPI_Allreduce per tensor.
#pragma once

#include "base/command/command_set.hpp"
#include "base/command/given_options.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const exchange_speed_row;

/// Runs as one of the ranks that `muster run` started; rank 0 prints a table or, with --json, JSON, on standard output. Every
/// result is checked while it is timed. Returns an exit code, 1 if one was wrong; throws muster::error.
int exchange_speed(given_options const& given, environment const& variables);

}  // namespace muster
