// `muster-bench steps`: training steps of a known network whose compute is timed and whose gradients the exchange averages.
#pragma once

#include <string_view>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"

namespace muster {

extern command_row const steps_row;

/// "resnet50", "gpt2-small".
bool is_timed_network(std::string_view name) noexcept;

/// Collective over the ranks that muster run started. Between the gradients of two tensors the backward pass takes its share of the
/// time by the multiplications of the layers; each gradient is submitted to the exchange under its name when it is ready, as by
/// muster.torch. After the first step every tensor is checked to be the average. Rank 0 prints the metrics of scale, every rank its
/// compute_s. Returns the exit code; throws muster::error.
int steps_command(given_options const& given, environment const& variables);

}  // namespace muster
