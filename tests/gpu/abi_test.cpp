// Our declarations of the driver's and NCCL's functions, held against their headers while this is compiled.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "comm/cuda/driver.hpp"
#include "comm/nccl/library/nccl_library.hpp"

#if MUSTER_HAVE_NCCL_HEADER
// nccl.h wants the CUDA runtime's headers, of which it needs little.
#include <nccl.h>
#endif

namespace {

/// Whether two types are passed in the same way: pointers, or numbers, enumerations or structures of one size.
template <typename Ours, typename Theirs>
constexpr bool same_kind() {
    if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>)
        return std::is_void_v<Ours> && std::is_void_v<Theirs>;
    else
        return std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && std::is_class_v<Ours> == std::is_class_v<Theirs> &&
               std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
}

template <typename Ours, typename Theirs>
struct same_call : std::false_type {};
template <typename R1, typename... A1, typename R2, typename... A2>
requires(sizeof...(A1) == sizeof...(A2)) struct same_call<R1 (*)(A1...), R2 (*)(A2...)>
    : std::bool_constant<same_kind<R1, R2>() && (same_kind<A1, A2>() && ...)> {
};

#define MUSTER_SAME(ours, theirs) \
    static_assert(same_call<decltype(ours), decltype(&theirs)>::value, #theirs " is declared otherwise than in its header")

using muster::cuda::driver;
// Where cuda.h gives a plain name to a later version than ours (cuEventElapsedTime, cuCtxCreate) we still call ours, by its
// symbol.
MUSTER_SAME(driver::init, cuInit);
MUSTER_SAME(driver::version, cuDriverGetVersion);
MUSTER_SAME(driver::error_name, cuGetErrorName);
MUSTER_SAME(driver::error_string, cuGetErrorString);
MUSTER_SAME(driver::device_count, cuDeviceGetCount);
MUSTER_SAME(driver::device_get, cuDeviceGet);
MUSTER_SAME(driver::device_name, cuDeviceGetName);
MUSTER_SAME(driver::device_get_uuid, cuDeviceGetUuid);
MUSTER_SAME(driver::device_attribute, cuDeviceGetAttribute);
MUSTER_SAME(driver::context_retain, cuDevicePrimaryCtxRetain);
MUSTER_SAME(driver::context_release, cuDevicePrimaryCtxRelease);
MUSTER_SAME(driver::context_push, cuCtxPushCurrent);
MUSTER_SAME(driver::context_pop, cuCtxPopCurrent);
MUSTER_SAME(driver::context_current, cuCtxGetCurrent);
MUSTER_SAME(driver::context_device, cuCtxGetDevice);
MUSTER_SAME(driver::stream_priorities, cuCtxGetStreamPriorityRange);
MUSTER_SAME(driver::stream_create, cuStreamCreateWithPriority);
MUSTER_SAME(driver::stream_destroy, cuStreamDestroy);
MUSTER_SAME(driver::stream_wait_event, cuStreamWaitEvent);
MUSTER_SAME(driver::stream_synchronize, cuStreamSynchronize);
MUSTER_SAME(driver::event_create, cuEventCreate);
MUSTER_SAME(driver::event_destroy, cuEventDestroy);
MUSTER_SAME(driver::event_record, cuEventRecord);
MUSTER_SAME(driver::event_query, cuEventQuery);
MUSTER_SAME(driver::event_synchronize, cuEventSynchronize);
MUSTER_SAME(driver::event_elapsed, cuEventElapsedTime);
MUSTER_SAME(driver::memory_alloc, cuMemAlloc);
MUSTER_SAME(driver::memory_free, cuMemFree);
MUSTER_SAME(driver::pinned_alloc, cuMemAllocHost);
MUSTER_SAME(driver::pinned_free, cuMemFreeHost);
MUSTER_SAME(driver::copy_device_to_device, cuMemcpyDtoDAsync);
MUSTER_SAME(driver::copy_host_to_device, cuMemcpyHtoDAsync);
MUSTER_SAME(driver::copy_device_to_host, cuMemcpyDtoHAsync);
MUSTER_SAME(driver::fill, cuMemsetD8Async);
MUSTER_SAME(driver::module_load, cuModuleLoadData);
MUSTER_SAME(driver::module_unload, cuModuleUnload);
MUSTER_SAME(driver::module_function, cuModuleGetFunction);
MUSTER_SAME(driver::occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor);
MUSTER_SAME(driver::launch, cuLaunchKernel);

static_assert(muster::cuda::success == CUDA_SUCCESS && muster::cuda::error_not_ready == CUDA_ERROR_NOT_READY);
static_assert(muster::cuda::error_no_device == CUDA_ERROR_NO_DEVICE);
static_assert(muster::cuda::error_no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(muster::cuda::error_unsupported_ptx_version == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(muster::cuda::attribute_multiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(muster::cuda::attribute_clock_khz == CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
static_assert(muster::cuda::stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(muster::cuda::event_without_timing == CU_EVENT_DISABLE_TIMING &&
              muster::cuda::event_with_timing == CU_EVENT_DEFAULT);
static_assert(sizeof(muster::cuda::device_uuid) == sizeof(CUuuid));

#if MUSTER_HAVE_NCCL_HEADER
using muster::nccl::library;
MUSTER_SAME(library::get_version, ncclGetVersion);
MUSTER_SAME(library::error_string, ncclGetErrorString);
MUSTER_SAME(library::last_error, ncclGetLastError);
MUSTER_SAME(library::get_unique_id, ncclGetUniqueId);
MUSTER_SAME(library::init_rank, ncclCommInitRankConfig);
MUSTER_SAME(library::split, ncclCommSplit);
MUSTER_SAME(library::async_error, ncclCommGetAsyncError);
MUSTER_SAME(library::finalize, ncclCommFinalize);
MUSTER_SAME(library::destroy, ncclCommDestroy);
MUSTER_SAME(library::abort, ncclCommAbort);
MUSTER_SAME(library::make_scaled_sum, ncclRedOpCreatePreMulSum);
MUSTER_SAME(library::destroy_op, ncclRedOpDestroy);
MUSTER_SAME(library::all_reduce, ncclAllReduce);
MUSTER_SAME(library::reduce, ncclReduce);
MUSTER_SAME(library::broadcast, ncclBroadcast);
MUSTER_SAME(library::reduce_scatter, ncclReduceScatter);
MUSTER_SAME(library::all_gather, ncclAllGather);
MUSTER_SAME(library::send, ncclSend);
MUSTER_SAME(library::receive, ncclRecv);
MUSTER_SAME(library::group_start, ncclGroupStart);
MUSTER_SAME(library::group_end, ncclGroupEnd);

static_assert(sizeof(muster::nccl::unique_id) == sizeof(ncclUniqueId));
static_assert(offsetof(muster::nccl::config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(muster::nccl::config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(muster::nccl::config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(muster::nccl::config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(muster::nccl::in_progress == ncclInProgress && muster::nccl::invalid_argument == ncclInvalidArgument);
static_assert(muster::nccl::system_error == ncclSystemError && muster::nccl::invalid_usage == ncclInvalidUsage && muster::nccl::remote_error == ncclRemoteError);
static_assert(muster::nccl::no_color == NCCL_SPLIT_NOCOLOR);
static_assert(static_cast<int>(muster::nccl::scalar_on_host) == static_cast<int>(ncclScalarHostImmediate));
constexpr bool same(muster::nccl::type ours, ncclDataType_t theirs) {
    return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(same(muster::nccl::type::i8, ncclInt8) && same(muster::nccl::type::u8, ncclUint8));
static_assert(same(muster::nccl::type::i32, ncclInt32) && same(muster::nccl::type::i64, ncclInt64));
static_assert(same(muster::nccl::type::f16, ncclFloat16) && same(muster::nccl::type::bf16, ncclBfloat16));
static_assert(same(muster::nccl::type::f32, ncclFloat32) && same(muster::nccl::type::f64, ncclFloat64));
constexpr bool same(muster::nccl::op ours, ncclRedOp_t theirs) {
    return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(same(muster::nccl::op::sum, ncclSum) && same(muster::nccl::op::product, ncclProd));
static_assert(same(muster::nccl::op::max, ncclMax) && same(muster::nccl::op::min, ncclMin));
static_assert(same(muster::nccl::op::average, ncclAvg));
#endif

TEST(abi, declarations_are_those_of_the_headers) {
    SUCCEED() << "the compiler has checked them";
}

}  // namespace
