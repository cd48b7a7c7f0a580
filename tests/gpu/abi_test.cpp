// Our declarations of the driver's and NCCL's functions, held against their headers while this is compiled.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "bench/gpu/library/cublas_functions.hpp"
#include "bench/gpu/library/cudnn_functions.hpp"
#include "comm/cuda/driver.hpp"
#include "comm/nccl/library/nccl_library.hpp"

#if MUSTER_HAVE_NCCL_HEADER
// nccl.h wants the CUDA runtime's headers, of which it needs little.
#include <nccl.h>
#endif

#if MUSTER_HAVE_CUDNN_HEADER
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // what cuDNN 9 calls so: it still has it
#include <cudnn.h>
#endif
#if MUSTER_HAVE_CUBLAS_HEADER
#include <cublas_v2.h>
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
MUSTER_SAME(driver::capture_begin, cuStreamBeginCapture);
MUSTER_SAME(driver::capture_end, cuStreamEndCapture);
MUSTER_SAME(driver::graph_instantiate, cuGraphInstantiateWithFlags);
MUSTER_SAME(driver::graph_launch, cuGraphLaunch);
MUSTER_SAME(driver::graph_destroy, cuGraphDestroy);
MUSTER_SAME(driver::ready_graph_destroy, cuGraphExecDestroy);

static_assert(muster::cuda::success == CUDA_SUCCESS && muster::cuda::error_not_ready == CUDA_ERROR_NOT_READY);
static_assert(muster::cuda::error_no_device == CUDA_ERROR_NO_DEVICE);
static_assert(muster::cuda::error_no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(muster::cuda::error_unsupported_ptx_version == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(muster::cuda::attribute_multiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(muster::cuda::attribute_clock_khz == CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
static_assert(muster::cuda::capture_this_thread == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
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
static_assert(muster::nccl::invalid_usage == ncclInvalidUsage && muster::nccl::remote_error == ncclRemoteError);
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

#if MUSTER_HAVE_CUDNN_HEADER
namespace cudnn = muster::cudnn;
MUSTER_SAME(cudnn::functions::version, cudnnGetVersion);
MUSTER_SAME(cudnn::functions::error_string, cudnnGetErrorString);
MUSTER_SAME(cudnn::functions::create, cudnnCreate);
MUSTER_SAME(cudnn::functions::destroy, cudnnDestroy);
MUSTER_SAME(cudnn::functions::set_stream, cudnnSetStream);
MUSTER_SAME(cudnn::functions::create_tensor, cudnnCreateTensorDescriptor);
MUSTER_SAME(cudnn::functions::destroy_tensor, cudnnDestroyTensorDescriptor);
MUSTER_SAME(cudnn::functions::set_tensor, cudnnSetTensor4dDescriptor);
MUSTER_SAME(cudnn::functions::create_filter, cudnnCreateFilterDescriptor);
MUSTER_SAME(cudnn::functions::destroy_filter, cudnnDestroyFilterDescriptor);
MUSTER_SAME(cudnn::functions::set_filter, cudnnSetFilter4dDescriptor);
MUSTER_SAME(cudnn::functions::create_convolution, cudnnCreateConvolutionDescriptor);
MUSTER_SAME(cudnn::functions::destroy_convolution, cudnnDestroyConvolutionDescriptor);
MUSTER_SAME(cudnn::functions::set_convolution, cudnnSetConvolution2dDescriptor);
MUSTER_SAME(cudnn::functions::set_convolution_math, cudnnSetConvolutionMathType);
MUSTER_SAME(cudnn::functions::create_pooling, cudnnCreatePoolingDescriptor);
MUSTER_SAME(cudnn::functions::destroy_pooling, cudnnDestroyPoolingDescriptor);
MUSTER_SAME(cudnn::functions::set_pooling, cudnnSetPooling2dDescriptor);
MUSTER_SAME(cudnn::functions::create_activation, cudnnCreateActivationDescriptor);
MUSTER_SAME(cudnn::functions::destroy_activation, cudnnDestroyActivationDescriptor);
MUSTER_SAME(cudnn::functions::set_activation, cudnnSetActivationDescriptor);
MUSTER_SAME(cudnn::functions::forward_algorithms, cudnnGetConvolutionForwardAlgorithm_v7);
MUSTER_SAME(cudnn::functions::data_algorithms, cudnnGetConvolutionBackwardDataAlgorithm_v7);
MUSTER_SAME(cudnn::functions::filter_algorithms, cudnnGetConvolutionBackwardFilterAlgorithm_v7);
MUSTER_SAME(cudnn::functions::convolution_forward, cudnnConvolutionForward);
MUSTER_SAME(cudnn::functions::convolution_backward_data, cudnnConvolutionBackwardData);
MUSTER_SAME(cudnn::functions::convolution_backward_filter, cudnnConvolutionBackwardFilter);
MUSTER_SAME(cudnn::functions::convolution_backward_bias, cudnnConvolutionBackwardBias);
MUSTER_SAME(cudnn::functions::add_tensor, cudnnAddTensor);
MUSTER_SAME(cudnn::functions::pooling_forward, cudnnPoolingForward);
MUSTER_SAME(cudnn::functions::pooling_backward, cudnnPoolingBackward);
MUSTER_SAME(cudnn::functions::activation_forward, cudnnActivationForward);
MUSTER_SAME(cudnn::functions::activation_backward, cudnnActivationBackward);
MUSTER_SAME(cudnn::functions::softmax_forward, cudnnSoftmaxForward);

static_assert(cudnn::success == CUDNN_STATUS_SUCCESS && cudnn::type_f32 == CUDNN_DATA_FLOAT);
static_assert(cudnn::planes == CUDNN_TENSOR_NCHW && cudnn::cross_correlation == CUDNN_CROSS_CORRELATION);
static_assert(cudnn::math_fma == CUDNN_FMA_MATH && cudnn::deterministic == CUDNN_DETERMINISTIC);
static_assert(cudnn::pooling_max_deterministic == CUDNN_POOLING_MAX_DETERMINISTIC);
static_assert(cudnn::activation_relu == CUDNN_ACTIVATION_RELU && cudnn::nan_propagates == CUDNN_PROPAGATE_NAN);
static_assert(cudnn::softmax_log == CUDNN_SOFTMAX_LOG && cudnn::softmax_of_image == CUDNN_SOFTMAX_MODE_INSTANCE);
template <typename Theirs>
constexpr bool same_algorithm() {
    using ours = cudnn::algorithm;
    return sizeof(ours) == sizeof(Theirs) && offsetof(ours, number) == offsetof(Theirs, algo) &&
           offsetof(ours, status) == offsetof(Theirs, status) && offsetof(ours, time) == offsetof(Theirs, time) &&
           offsetof(ours, memory) == offsetof(Theirs, memory) && offsetof(ours, determinism) == offsetof(Theirs, determinism) &&
           offsetof(ours, math) == offsetof(Theirs, mathType);
}
static_assert(same_algorithm<cudnnConvolutionFwdAlgoPerf_t>() && same_algorithm<cudnnConvolutionBwdDataAlgoPerf_t>() &&
              same_algorithm<cudnnConvolutionBwdFilterAlgoPerf_t>());
#endif

#if MUSTER_HAVE_CUBLAS_HEADER
namespace cublas = muster::cublas;
MUSTER_SAME(cublas::functions::status_string, cublasGetStatusString);
MUSTER_SAME(cublas::functions::create, cublasCreate_v2);
MUSTER_SAME(cublas::functions::destroy, cublasDestroy_v2);
MUSTER_SAME(cublas::functions::version, cublasGetVersion_v2);
MUSTER_SAME(cublas::functions::set_stream, cublasSetStream_v2);
MUSTER_SAME(cublas::functions::set_workspace, cublasSetWorkspace_v2);
MUSTER_SAME(cublas::functions::sgemm, cublasSgemm_v2);
static_assert(cublas::success == CUBLAS_STATUS_SUCCESS);
static_assert(cublas::as_it_is == CUBLAS_OP_N && cublas::transposed == CUBLAS_OP_T);
#endif

TEST(abi, declarations_are_those_of_the_headers) {
    SUCCEED() << "the compiler has checked them";
}

}  // namespace
