// The rows of the program gpu_speed: allreduces of a network's gradients on GPUs, and the kernels that pack them.
#pragma once

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const exchange_speed_row, kernels_speed_row;

/// Return the exit code, 77 where there is no GPU, NCCL or kernel; throw muster::error.
int exchange_speed(given_options const& given, environment const& variables);
int kernels_speed(given_options const& given, environment const& variables);

}  // namespace muster
