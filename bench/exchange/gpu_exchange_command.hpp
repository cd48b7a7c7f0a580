// `muster-bench gpu-exchange`: measures gradients on GPUs through the exchange, beside NCCL alone.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Runs as one of the ranks that `muster run` started; rank 0 prints a table or, with --json, JSON, on standard output. Returns
/// an exit code: 1 if a result was wrong, 77 where there is no GPU or no NCCL; throws muster::error.
int gpu_exchange_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
