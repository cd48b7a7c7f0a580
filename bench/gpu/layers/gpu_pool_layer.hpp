// Max-pooling 2x2 on a GPU with optional dropout of single outputs behind it, by cuDNN.
#pragma once

#include "bench/gpu/layers/gpu_dropout.hpp"
#include "bench/gpu/layers/gpu_objects.hpp"
#include "bench/network/layer.hpp"

namespace muster {

/// Does what max_pool_layer does on the CPU; device memory, as gpu_convolution_layer.
class gpu_pool_layer : public layer {
  public:
    struct options {
        std::string name;
        int channels = 1;
        int size = 2;       ///< the input's height and width: even
        float dropout = 0;  ///< probability that an output is dropped; 0: none
        int max_batch = 64;
        unsigned number = 0;  ///< of the layer, for its dropout's key
    };
    gpu_pool_layer(options const& what, gpu_compute const& with, cuda::step_arguments const* step);

    std::string_view name() const override { return options_.name; }
    tensor_format in_format() const override { return planes_of(options_.channels, options_.size, options_.size); }
    tensor_format out_format() const override { return planes_of(options_.channels, options_.size / 2, options_.size / 2); }
    tensor_format in_gradient_format() const override { return in_format(); }
    std::vector<parameter_shape> parameters() const override { return {}; }
    void bind(std::span<float const>, std::span<float>) override {}
    void resample(random_stream const& stream, int) override { dropout_.resample(stream); }
    float dropout_factor(int image, int unit) const override;
    void forward(int images, float const* in, float* out, bool training) override;
    void backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) override;
    work dense_work(bool) const override { return {0, 0}; }

  private:
    std::size_t outputs(int images) const noexcept;
    void set_images(int images);

    options options_;
    gpu_compute const& with_;
    gpu_dropout dropout_;
    dnn_tensor in_, out_;
    dnn_object<cudnn::pooling_handle> pooling_;
    gpu_floats pooled_;  // before dropout: what the backward pass compares the input with
    gpu_floats masked_;
    int images_ = 0;
};

}  // namespace muster
