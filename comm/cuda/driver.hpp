// The CUDA driver's functions are found at run time, so that one build serves machines with and without GPUs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/shared_library.hpp"

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
    /// Looks for every function in `library`; `missing` names those it lacks.
    explicit driver(shared_library const& library);

    std::string missing;  ///< functions of the list below that the library lacks, or ""

    int (*init)(unsigned) = nullptr;
    int (*version)(int*) = nullptr;
    int (*error_name)(int, char const**) = nullptr;
    int (*error_string)(int, char const**) = nullptr;
    int (*device_count)(int*) = nullptr;
    int (*device_get)(int*, int) = nullptr;
    int (*device_name)(char*, int, int) = nullptr;
    int (*device_get_uuid)(device_uuid*, int) = nullptr;
    int (*device_attribute)(int*, int, int) = nullptr;
    int (*context_retain)(context_handle*, int) = nullptr;
    int (*context_release)(int) = nullptr;
    int (*context_push)(context_handle) = nullptr;
    int (*context_pop)(context_handle*) = nullptr;
    int (*context_current)(context_handle*) = nullptr;
    int (*context_device)(int*) = nullptr;
    int (*stream_priorities)(int*, int*) = nullptr;
    int (*stream_create)(stream_handle*, unsigned, int) = nullptr;
    int (*stream_destroy)(stream_handle) = nullptr;
    int (*stream_wait_event)(stream_handle, event_handle, unsigned) = nullptr;
    int (*stream_synchronize)(stream_handle) = nullptr;
    int (*event_create)(event_handle*, unsigned) = nullptr;
    int (*event_destroy)(event_handle) = nullptr;
    int (*event_record)(event_handle, stream_handle) = nullptr;
    int (*event_query)(event_handle) = nullptr;
    int (*event_synchronize)(event_handle) = nullptr;
    int (*event_elapsed)(float*, event_handle, event_handle) = nullptr;
    int (*memory_alloc)(device_address*, std::size_t) = nullptr;
    int (*memory_free)(device_address) = nullptr;
    int (*pinned_alloc)(void**, std::size_t) = nullptr;
    int (*pinned_free)(void*) = nullptr;
    int (*copy_device_to_device)(device_address, device_address, std::size_t, stream_handle) = nullptr;
    int (*copy_host_to_device)(device_address, void const*, std::size_t, stream_handle) = nullptr;
    int (*copy_device_to_host)(void*, device_address, std::size_t, stream_handle) = nullptr;
    int (*fill)(device_address, unsigned char, std::size_t, stream_handle) = nullptr;
    int (*module_load)(module_handle*, void const*) = nullptr;
    int (*module_unload)(module_handle) = nullptr;
    int (*module_function)(kernel_handle*, module_handle, char const*) = nullptr;
    int (*occupancy)(int*, kernel_handle, int, std::size_t) = nullptr;
    int (*launch)(kernel_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, stream_handle, void**,
                  void**) = nullptr;
};

/// Calls `visit("cuInit", member)` for every function of a `driver` (or `driver const`), in the order above: the only list of the
/// symbols' names.
template <typename Driver, typename Visit>
void for_each_function(Driver& of, Visit&& visit) {
    visit("cuInit", of.init);
    visit("cuDriverGetVersion", of.version);
    visit("cuGetErrorName", of.error_name);
    visit("cuGetErrorString", of.error_string);
    visit("cuDeviceGetCount", of.device_count);
    visit("cuDeviceGet", of.device_get);
    visit("cuDeviceGetName", of.device_name);
    visit("cuDeviceGetUuid", of.device_get_uuid);
    visit("cuDeviceGetAttribute", of.device_attribute);
    visit("cuDevicePrimaryCtxRetain", of.context_retain);
    visit("cuDevicePrimaryCtxRelease_v2", of.context_release);
    visit("cuCtxPushCurrent_v2", of.context_push);
    visit("cuCtxPopCurrent_v2", of.context_pop);
    visit("cuCtxGetCurrent", of.context_current);
    visit("cuCtxGetDevice", of.context_device);
    visit("cuCtxGetStreamPriorityRange", of.stream_priorities);
    visit("cuStreamCreateWithPriority", of.stream_create);
    visit("cuStreamDestroy_v2", of.stream_destroy);
    visit("cuStreamWaitEvent", of.stream_wait_event);
    visit("cuStreamSynchronize", of.stream_synchronize);
    visit("cuEventCreate", of.event_create);
    visit("cuEventDestroy_v2", of.event_destroy);
    visit("cuEventRecord", of.event_record);
    visit("cuEventQuery", of.event_query);
    visit("cuEventSynchronize", of.event_synchronize);
    visit("cuEventElapsedTime", of.event_elapsed);
    visit("cuMemAlloc_v2", of.memory_alloc);
    visit("cuMemFree_v2", of.memory_free);
    visit("cuMemAllocHost_v2", of.pinned_alloc);
    visit("cuMemFreeHost", of.pinned_free);
    visit("cuMemcpyDtoDAsync_v2", of.copy_device_to_device);
    visit("cuMemcpyHtoDAsync_v2", of.copy_host_to_device);
    visit("cuMemcpyDtoHAsync_v2", of.copy_device_to_host);
    visit("cuMemsetD8Async", of.fill);
    visit("cuModuleLoadData", of.module_load);
    visit("cuModuleUnload", of.module_unload);
    visit("cuModuleGetFunction", of.module_function);
    visit("cuOccupancyMaxActiveBlocksPerMultiprocessor", of.occupancy);
    visit("cuLaunchKernel", of.launch);
}

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
