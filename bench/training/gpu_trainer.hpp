// The trainer of GPUs: the data lies in their memory, a step is a graph, and gradients are reduced there beside the backward pass.
#pragma once

#include <memory>
#include <string>

#include "bench/training/trainer.hpp"

namespace muster {

/// "", or what this machine or this build lacks to train on a GPU, and one thing to do.
std::string gpu_training_lacks();

/// Collective. The same arithmetic as the CPU's trainer, by cuDNN and cuBLAS in f32, rounded otherwise. Throws on all ranks what one
/// of them lacks: errc::unavailable, errc::placement, cuda_error, library_error. No GPU has run it.
std::unique_ptr<trainer> make_gpu_trainer(training_options const& options, communicator& ranks);

}  // namespace muster
