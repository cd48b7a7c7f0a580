// A convolution on a GPU with ReLU, and optional dropout of channels and max-pooling 2x2, by cuDNN.
#pragma once

#include <map>

#include "bench/gpu/layers/gpu_dropout.hpp"
#include "bench/gpu/layers/gpu_objects.hpp"
#include "bench/network/layer.hpp"

namespace muster {

/// Does what convolution_layer and window_layer do on the CPU, in the order convolution, bias, ReLU, dropout, pooling. All pointers
/// and spans are of device memory, and nothing has happened yet when a call returns: see gpu_compute.
class gpu_convolution_layer : public layer {
  public:
    struct options {
        std::string name;
        int in_channels = 1, out_channels = 1;
        int size = 0;  ///< the input's height and width
        int window = 3, padding = 0, stride = 1;
        bool pool = false;
        float dropout = 0;  ///< probability that a channel is dropped; 0: none
        int max_batch = 64;
        unsigned number = 0;  ///< of the layer, for its dropout's key
    };
    gpu_convolution_layer(options const& what, gpu_compute const& with, cuda::step_arguments const* step);

    std::string_view name() const override { return options_.name; }
    tensor_format in_format() const override;
    tensor_format out_format() const override;
    tensor_format in_gradient_format() const override { return in_format(); }
    std::vector<parameter_shape> parameters() const override;
    void bind(std::span<float const> parameters, std::span<float> gradients) override;
    void resample(random_stream const& stream, int) override { dropout_.resample(stream); }
    float dropout_factor(int image, int unit) const override;
    void forward(int images, float const* in, float* out, bool training) override;
    void backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) override;
    work dense_work(bool input_gradient) const override;

  private:
    /// Numbers of cuDNN's algorithms.
    struct algorithms {
        int forward = 0, data = 0, filter = 0;
    };
    tensor_format full_format() const;  ///< before pooling
    void set_images(int images);
    algorithms choose() const;

    options options_;
    gpu_compute const& with_;
    gpu_dropout dropout_;
    dnn_tensor in_, full_, out_, bias_shape_;
    dnn_object<cudnn::filter_handle> filter_;
    dnn_object<cudnn::convolution_handle> convolution_;
    dnn_object<cudnn::activation_handle> relu_;
    dnn_object<cudnn::pooling_handle> pooling_;
    std::span<float const> weights_, bias_;
    std::span<float> weight_gradient_, bias_gradient_;
    gpu_floats before_pooling_, masked_;
    int images_ = 0;
    std::map<int, algorithms> chosen_;  // by the number of images
};

}  // namespace muster
