// The kernels of the training: network_body.hpp for each kind of work. Compiled to a fat binary that muster-bench carries.
#include "bench/gpu/library/network_body.hpp"

// 256 threads a block: gpu_compute.cpp launches so many.
#define MUSTER_KERNEL(name)                                                                               \
    extern "C" __global__ void __launch_bounds__(256) muster_net_##name(muster::cuda::name##_work work) { \
        muster::cuda::run_share(work, static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x,  \
                                static_cast<std::uint64_t>(gridDim.x) * blockDim.x);                      \
    }

MUSTER_NETWORK_KERNELS(MUSTER_KERNEL)
