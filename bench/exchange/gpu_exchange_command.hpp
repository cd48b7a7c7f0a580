// `muster-bench gpu-exchange`: measures gradients on GPUs through the exchange, beside NCCL alone.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const gpu_exchange_row;

/// Runs as one of the ranks that `muster run` started; rank 0 prints a table or, with --json, JSON, on standard output. Returns
/// an exit code: 1 if a result was wrong, 77 where there is no GPU or no NCCL; throws muster::error.
int gpu_exchange_command(given_options const& given, environment const& variables);

}  // namespace muster
