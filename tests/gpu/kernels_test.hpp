// Helpers of tests of the fusion kernels.
#pragma once

#include <memory>

#include "comm/cuda/fusion_kernels.hpp"
#include "gpu_test.hpp"

namespace muster::test {

/// The kernels on that GPU; until the main ends.
std::shared_ptr<cuda::fusion_kernels const> const& kernels();

/// Whether another library than the CUDA driver was given: tests may do less then.
bool on_fake();

}  // namespace muster::test
