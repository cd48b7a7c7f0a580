// The layers of the published networks for a GPU. Makes the same networks as bench/network/published.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bench/gpu/layers/gpu_compute.hpp"
#include "bench/network/network.hpp"

namespace muster {

/// "mnist" or "cifar10"; throws errc::usage for another. `dropout` is the probability of all its dropouts.
std::vector<std::unique_ptr<layer>> make_gpu_layers(std::string_view name, int max_batch, float dropout, gpu_compute const& with,
                                                    cuda::step_arguments const* step);

/// The images that it takes.
image_input const& input_of_gpu_network(std::string_view name);

}  // namespace muster
