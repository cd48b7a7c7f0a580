// The CUDA driver's functions are found at run time, so that one build serves machines with and without GPUs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "comm/cuda/library_functions.hpp"

namespace muster {

// The error of a call to the CUDA driver.

/// An error of the CUDA driver, with the call's name and the driver's code.
class cuda_error : public library_error {
  public:
    cuda_error(std::string_view call, int native_code, std::string_view text) : library_error("CUDA", call, native_code, text) {}
};

}  // namespace muster

namespace muster::cuda {

// The necessary declarations of the driver's documented ABI (cuda.h, "CUDA Driver API"), so that the build needs no CUDA toolkit.
// tests/gpu/abi_test.cpp compares them with cuda.h where that exists.
using context_handle = struct context_record*;  ///< CUcontext
using stream_handle = struct stream_record*;    ///< CUstream; cudaStream_t is the same pointer
using event_handle = struct event_record*;      ///< CUevent
using module_handle = struct module_record*;    ///< CUmodule
using kernel_handle = struct kernel_record*;    ///< CUfunction
using device_address = unsigned long long;      ///< CUdeviceptr
struct device_uuid {
    char bytes[16];
};

inline constexpr int success = 0;
inline constexpr int error_not_initialized = 3;
inline constexpr int error_deinitialized = 4;
inline constexpr int error_no_device = 100;
inline constexpr int error_no_binary_for_gpu = 209;
inline constexpr int error_unsupported_ptx_version = 222;
inline constexpr int error_not_ready = 600;
inline constexpr int attribute_clock_khz = 13;
inline constexpr int attribute_multiprocessors = 16;
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_without_timing = 2;
inline constexpr unsigned event_with_timing = 0;

/// The functions, as loaded or as a test gives them. A default one has none.
struct driver {
    driver() = default;
    explicit driver(shared_library const& library) : from(library) {}

    library_functions from;

    int (*init)(unsigned) = from["cuInit"];
    int (*version)(int*) = from["cuDriverGetVersion"];
    int (*error_name)(int, char const**) = from["cuGetErrorName"];
    int (*error_string)(int, char const**) = from["cuGetErrorString"];
    int (*device_count)(int*) = from["cuDeviceGetCount"];
    int (*device_get)(int*, int) = from["cuDeviceGet"];
    int (*device_name)(char*, int, int) = from["cuDeviceGetName"];
    int (*device_get_uuid)(device_uuid*, int) = from["cuDeviceGetUuid"];
    int (*device_attribute)(int*, int, int) = from["cuDeviceGetAttribute"];
    int (*context_retain)(context_handle*, int) = from["cuDevicePrimaryCtxRetain"];
    int (*context_release)(int) = from["cuDevicePrimaryCtxRelease_v2"];
    int (*context_push)(context_handle) = from["cuCtxPushCurrent_v2"];
    int (*context_pop)(context_handle*) = from["cuCtxPopCurrent_v2"];
    int (*context_current)(context_handle*) = from["cuCtxGetCurrent"];
    int (*context_device)(int*) = from["cuCtxGetDevice"];
    int (*stream_priorities)(int*, int*) = from["cuCtxGetStreamPriorityRange"];
    int (*stream_create)(stream_handle*, unsigned, int) = from["cuStreamCreateWithPriority"];
    int (*stream_destroy)(stream_handle) = from["cuStreamDestroy_v2"];
    int (*stream_wait_event)(stream_handle, event_handle, unsigned) = from["cuStreamWaitEvent"];
    int (*stream_synchronize)(stream_handle) = from["cuStreamSynchronize"];
    int (*event_create)(event_handle*, unsigned) = from["cuEventCreate"];
    int (*event_destroy)(event_handle) = from["cuEventDestroy_v2"];
    int (*event_record)(event_handle, stream_handle) = from["cuEventRecord"];
    int (*event_query)(event_handle) = from["cuEventQuery"];
    int (*event_synchronize)(event_handle) = from["cuEventSynchronize"];
    int (*event_elapsed)(float*, event_handle, event_handle) = from["cuEventElapsedTime"];
    int (*memory_alloc)(device_address*, std::size_t) = from["cuMemAlloc_v2"];
    int (*memory_free)(device_address) = from["cuMemFree_v2"];
    int (*pinned_alloc)(void**, std::size_t) = from["cuMemAllocHost_v2"];
    int (*pinned_free)(void*) = from["cuMemFreeHost"];
    int (*copy_device_to_device)(device_address, device_address, std::size_t, stream_handle) = from["cuMemcpyDtoDAsync_v2"];
    int (*copy_host_to_device)(device_address, void const*, std::size_t, stream_handle) = from["cuMemcpyHtoDAsync_v2"];
    int (*copy_device_to_host)(void*, device_address, std::size_t, stream_handle) = from["cuMemcpyDtoHAsync_v2"];
    int (*fill)(device_address, unsigned char, std::size_t, stream_handle) = from["cuMemsetD8Async"];
    int (*module_load)(module_handle*, void const*) = from["cuModuleLoadData"];
    int (*module_unload)(module_handle) = from["cuModuleUnload"];
    int (*module_function)(kernel_handle*, module_handle, char const*) = from["cuModuleGetFunction"];
    int (*occupancy)(int*, kernel_handle, int, std::size_t) = from["cuOccupancyMaxActiveBlocksPerMultiprocessor"];
    int (*launch)(kernel_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, stream_handle, void**,
                  void**) = from["cuLaunchKernel"];
};

/// Returns "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)", or the number if the driver does not know it.
std::string describe(driver const& with, int code);

/// Throws cuda_error with the call's name unless `code` is success.
void check(driver const& with, int code, std::string_view call);

/// The driver of this machine, or the reason why it cannot be used.
struct found_driver {
    driver const* use = nullptr;  ///< initialised; stays loaded until the process ends
    int devices = 0;              ///< this process may use; at least 1 if `use` is set
    std::string why_not;          ///< what was looked for, and the reason, if `use` is null
};

/// Loads and initialises libcuda.so.1, once. Thread safe. Never throws for a missing library, driver or device.
found_driver const& find_driver();

/// The same with libraries of these names, tried in order. Every call that finds one keeps it until the process ends.
found_driver find_driver(std::span<std::string const> names);

}  // namespace muster::cuda
