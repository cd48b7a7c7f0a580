// `muster-bench gpu-kernels`: measures the fusion kernels beside the copies of the CUDA driver.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Prints the table; see its help. Returns 77, with the reason on standard error, where there is no GPU or no kernel.
int gpu_kernels_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
