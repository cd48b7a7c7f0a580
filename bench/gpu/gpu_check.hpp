// The steps of muster-bench gpu-check that run as separate processes, so that a crash or a hang is one step's result.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"

namespace muster {

inline constexpr int gpu_step_not_run = 77;  ///< the exit code of a step that cannot run here; its last line of output says why

extern command_row const gpu_check_step_row;

/// Runs `gpu-check-step NAME`: driver or kernels, or, as one of the ranks that muster run started, binding, nccl or exchange. Lines NAME<tab>VERSION
/// on standard output are versions. Returns 0, 1 with what is wrong on standard output, or gpu_step_not_run; throws muster::error.
int gpu_check_step(std::vector<std::string> const& args, environment const& variables);

/// Returns gpu_check_steps.py as it was when this program was built: the steps with PyTorch.
std::span<embedded_text const> gpu_check_files() noexcept;

}  // namespace muster
