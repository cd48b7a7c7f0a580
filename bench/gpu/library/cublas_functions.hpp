// cuBLAS's functions, found at run time, so that one build serves machines with and without it.
#pragma once

#include <cstddef>

#include "bench/gpu/library/found_functions.hpp"
#include "comm/cuda/driver.hpp"

namespace muster::cublas {

// The few declarations needed of cuBLAS's documented C interface (cublas_api.h of CUDA 13), as for cuDNN.
using handle = struct handle_record*;  ///< cublasHandle_t
using cuda::stream_handle;

inline constexpr int success = 0;
inline constexpr int as_it_is = 0;    ///< CUBLAS_OP_N
inline constexpr int transposed = 1;  ///< CUBLAS_OP_T

struct functions {
    char const* (*status_string)(int) = nullptr;
    int (*create)(handle*) = nullptr;
    int (*destroy)(handle) = nullptr;
    int (*version)(handle, int*) = nullptr;
    int (*set_stream)(handle, stream_handle) = nullptr;
    int (*set_workspace)(handle, void*, std::size_t) = nullptr;
    int (*sgemm)(handle, int, int, int, int, int, float const*, float const*, int, float const*, int, float const*, float*,
                 int) = nullptr;
};

/// Calls `visit("cublasCreate_v2", member)` for every function: the one list of the symbols' names.
template <typename Functions, typename Visit>
void for_each_function(Functions& of, Visit&& visit) {
    visit("cublasGetStatusString", of.status_string);
    visit("cublasCreate_v2", of.create);
    visit("cublasDestroy_v2", of.destroy);
    visit("cublasGetVersion_v2", of.version);
    visit("cublasSetStream_v2", of.set_stream);
    visit("cublasSetWorkspace_v2", of.set_workspace);
    visit("cublasSgemm_v2", of.sgemm);
}

/// cuBLAS of CUDA 13 or 12 of this machine, or why there is none. Looked for once; thread safe.
found_functions<functions> const& find();

}  // namespace muster::cublas
