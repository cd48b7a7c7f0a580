// The fusion kernels are fusion_body.hpp for every way in which elements move, compiled to a fat binary that the library carries.
#include "comm/cuda/fusion_body.hpp"

// 256 threads a block: fusion_threads of fusion_kernels.hpp.
#define MUSTER_KERNEL(way)                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                     \
        muster_##way(muster::cuda::fusion_work work, muster::cuda::ways::way::factor by) {                \
        muster::cuda::run_thread<muster::cuda::ways::way>(work, by, blockIdx.x, threadIdx.x, blockDim.x); \
    }

MUSTER_FUSION_WAYS(MUSTER_KERNEL)
