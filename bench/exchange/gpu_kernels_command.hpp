// `muster-bench gpu-kernels`: measures the fusion kernels beside the copies of the CUDA driver.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const gpu_kernels_row;

/// Prints the table; see its help. Returns 77, with the reason on standard error, where there is no GPU or no kernel.
int gpu_kernels_command(given_options const& given, environment const& variables);

}  // namespace muster
