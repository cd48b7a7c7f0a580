// cuDNN's functions, found at run time, so that one build serves machines with and without it.
#pragma once

#include <cstddef>

#include "bench/gpu/library/found_functions.hpp"
#include "comm/cuda/driver.hpp"

namespace muster::cudnn {

// The few declarations needed of cuDNN's documented C interface (cudnn_ops.h, cudnn_cnn.h and cudnn_graph.h of cuDNN 9), so that it
// need not be there to build. tests/gpu/abi_test.cpp holds them against the headers where there are any.
using handle = struct handle_record*;                   ///< cudnnHandle_t
using tensor_handle = struct tensor_record*;            ///< cudnnTensorDescriptor_t
using filter_handle = struct filter_record*;            ///< cudnnFilterDescriptor_t
using convolution_handle = struct convolution_record*;  ///< cudnnConvolutionDescriptor_t
using pooling_handle = struct pooling_record*;          ///< cudnnPoolingDescriptor_t
using activation_handle = struct activation_record*;    ///< cudnnActivationDescriptor_t
using cuda::stream_handle;

inline constexpr int success = 0;
inline constexpr int type_f32 = 0;                   ///< CUDNN_DATA_FLOAT
inline constexpr int planes = 0;                     ///< CUDNN_TENSOR_NCHW
inline constexpr int cross_correlation = 1;          ///< what training programs call a convolution
inline constexpr int math_fma = 3;                   ///< CUDNN_FMA_MATH: f32 stays f32, without TF32
inline constexpr int deterministic = 1;              ///< CUDNN_DETERMINISTIC
inline constexpr int pooling_max_deterministic = 3;  ///< CUDNN_POOLING_MAX_DETERMINISTIC
inline constexpr int activation_relu = 1;
inline constexpr int nan_propagates = 1;
inline constexpr int softmax_log = 2;
inline constexpr int softmax_of_image = 0;  ///< CUDNN_SOFTMAX_MODE_INSTANCE

/// cudnnConvolutionFwdAlgoPerf_t, and the same of the two backward passes.
struct algorithm {
    int number;
    int status;
    float time;
    std::size_t memory;  ///< bytes of workspace
    int determinism;
    int math;
    int reserved[3];
};

struct functions {
    std::size_t (*version)() = nullptr;
    char const* (*error_string)(int) = nullptr;
    int (*create)(handle*) = nullptr;
    int (*destroy)(handle) = nullptr;
    int (*set_stream)(handle, stream_handle) = nullptr;
    int (*create_tensor)(tensor_handle*) = nullptr;
    int (*destroy_tensor)(tensor_handle) = nullptr;
    int (*set_tensor)(tensor_handle, int, int, int, int, int, int) = nullptr;
    int (*create_filter)(filter_handle*) = nullptr;
    int (*destroy_filter)(filter_handle) = nullptr;
    int (*set_filter)(filter_handle, int, int, int, int, int, int) = nullptr;
    int (*create_convolution)(convolution_handle*) = nullptr;
    int (*destroy_convolution)(convolution_handle) = nullptr;
    int (*set_convolution)(convolution_handle, int, int, int, int, int, int, int, int) = nullptr;
    int (*set_convolution_math)(convolution_handle, int) = nullptr;
    int (*create_pooling)(pooling_handle*) = nullptr;
    int (*destroy_pooling)(pooling_handle) = nullptr;
    int (*set_pooling)(pooling_handle, int, int, int, int, int, int, int, int) = nullptr;
    int (*create_activation)(activation_handle*) = nullptr;
    int (*destroy_activation)(activation_handle) = nullptr;
    int (*set_activation)(activation_handle, int, int, double) = nullptr;
    int (*forward_algorithms)(handle, tensor_handle, filter_handle, convolution_handle, tensor_handle, int, int*,
                              algorithm*) = nullptr;
    int (*data_algorithms)(handle, filter_handle, tensor_handle, convolution_handle, tensor_handle, int, int*,
                           algorithm*) = nullptr;
    int (*filter_algorithms)(handle, tensor_handle, tensor_handle, convolution_handle, filter_handle, int, int*,
                             algorithm*) = nullptr;
    int (*convolution_forward)(handle, void const*, tensor_handle, void const*, filter_handle, void const*, convolution_handle,
                               int, void*, std::size_t, void const*, tensor_handle, void*) = nullptr;
    int (*convolution_backward_data)(handle, void const*, filter_handle, void const*, tensor_handle, void const*,
                                     convolution_handle, int, void*, std::size_t, void const*, tensor_handle, void*) = nullptr;
    int (*convolution_backward_filter)(handle, void const*, tensor_handle, void const*, tensor_handle, void const*,
                                       convolution_handle, int, void*, std::size_t, void const*, filter_handle, void*) = nullptr;
    int (*convolution_backward_bias)(handle, void const*, tensor_handle, void const*, void const*, tensor_handle,
                                     void*) = nullptr;
    int (*add_tensor)(handle, void const*, tensor_handle, void const*, void const*, tensor_handle, void*) = nullptr;
    int (*pooling_forward)(handle, pooling_handle, void const*, tensor_handle, void const*, void const*, tensor_handle,
                           void*) = nullptr;
    int (*pooling_backward)(handle, pooling_handle, void const*, tensor_handle, void const*, tensor_handle, void const*,
                            tensor_handle, void const*, void const*, tensor_handle, void*) = nullptr;
    int (*activation_forward)(handle, activation_handle, void const*, tensor_handle, void const*, void const*, tensor_handle,
                              void*) = nullptr;
    int (*activation_backward)(handle, activation_handle, void const*, tensor_handle, void const*, tensor_handle, void const*,
                               tensor_handle, void const*, void const*, tensor_handle, void*) = nullptr;
    int (*softmax_forward)(handle, int, int, void const*, tensor_handle, void const*, void const*, tensor_handle,
                           void*) = nullptr;
};

/// Calls `visit("cudnnCreate", member)` for every function: the one list of the symbols' names.
template <typename Functions, typename Visit>
void for_each_function(Functions& of, Visit&& visit) {
    visit("cudnnGetVersion", of.version);
    visit("cudnnGetErrorString", of.error_string);
    visit("cudnnCreate", of.create);
    visit("cudnnDestroy", of.destroy);
    visit("cudnnSetStream", of.set_stream);
    visit("cudnnCreateTensorDescriptor", of.create_tensor);
    visit("cudnnDestroyTensorDescriptor", of.destroy_tensor);
    visit("cudnnSetTensor4dDescriptor", of.set_tensor);
    visit("cudnnCreateFilterDescriptor", of.create_filter);
    visit("cudnnDestroyFilterDescriptor", of.destroy_filter);
    visit("cudnnSetFilter4dDescriptor", of.set_filter);
    visit("cudnnCreateConvolutionDescriptor", of.create_convolution);
    visit("cudnnDestroyConvolutionDescriptor", of.destroy_convolution);
    visit("cudnnSetConvolution2dDescriptor", of.set_convolution);
    visit("cudnnSetConvolutionMathType", of.set_convolution_math);
    visit("cudnnCreatePoolingDescriptor", of.create_pooling);
    visit("cudnnDestroyPoolingDescriptor", of.destroy_pooling);
    visit("cudnnSetPooling2dDescriptor", of.set_pooling);
    visit("cudnnCreateActivationDescriptor", of.create_activation);
    visit("cudnnDestroyActivationDescriptor", of.destroy_activation);
    visit("cudnnSetActivationDescriptor", of.set_activation);
    visit("cudnnGetConvolutionForwardAlgorithm_v7", of.forward_algorithms);
    visit("cudnnGetConvolutionBackwardDataAlgorithm_v7", of.data_algorithms);
    visit("cudnnGetConvolutionBackwardFilterAlgorithm_v7", of.filter_algorithms);
    visit("cudnnConvolutionForward", of.convolution_forward);
    visit("cudnnConvolutionBackwardData", of.convolution_backward_data);
    visit("cudnnConvolutionBackwardFilter", of.convolution_backward_filter);
    visit("cudnnConvolutionBackwardBias", of.convolution_backward_bias);
    visit("cudnnAddTensor", of.add_tensor);
    visit("cudnnPoolingForward", of.pooling_forward);
    visit("cudnnPoolingBackward", of.pooling_backward);
    visit("cudnnActivationForward", of.activation_forward);
    visit("cudnnActivationBackward", of.activation_backward);
    visit("cudnnSoftmaxForward", of.softmax_forward);
}

/// cuDNN 9 or 8 of this machine, or why there is none. Looked for once; thread safe.
found_functions<functions> const& find();

}  // namespace muster::cudnn
