// The variables that tell a rank's program which GPU is its own.
#pragma once

#include "base/environment.hpp"
#include "launch/placement/binding.hpp"

namespace muster {

/// Sets for a rank with a GPU: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER (AMD: ROCR_VISIBLE_DEVICES; Intel: ZE_AFFINITY_MASK),
/// MUSTER_GPU_INDEX, which is what its program passes to cudaSetDevice, JAX_LOCAL_DEVICE_IDS, and MUSTER_GPU_UUID if it is known.
/// Lists of AMD's and of other vendors that would be applied on top are removed.
void set_gpu_variables(environment& variables, binding const& place);

}  // namespace muster
