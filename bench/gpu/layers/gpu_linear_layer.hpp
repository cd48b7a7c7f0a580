// A fully connected layer on a GPU with optional ReLU and dropout, by cuBLAS and cuDNN.
#pragma once

#include "bench/gpu/layers/gpu_dropout.hpp"
#include "bench/gpu/layers/gpu_objects.hpp"
#include "bench/network/layer.hpp"

namespace muster {

/// Does what linear_layer does on the CPU, rows without padding; device memory, as gpu_convolution_layer.
class gpu_linear_layer : public layer {
  public:
    struct options {
        std::string name;
        int in = 0, out = 0;
        bool relu = false;
        float dropout = 0;  ///< probability that an output is dropped; 0: none
        int max_batch = 64;
        unsigned number = 0;  ///< of the layer, for its dropout's key
    };
    gpu_linear_layer(options const& what, gpu_compute const& with, cuda::step_arguments const* step);

    std::string_view name() const override { return options_.name; }
    tensor_format in_format() const override { return planes_of(options_.in, 1, 1); }
    tensor_format out_format() const override { return planes_of(options_.out, 1, 1); }
    tensor_format in_gradient_format() const override { return in_format(); }
    std::vector<parameter_shape> parameters() const override;
    void bind(std::span<float const> parameters, std::span<float> gradients) override;
    void resample(random_stream const& stream, int) override { dropout_.resample(stream); }
    float dropout_factor(int image, int unit) const override;
    void forward(int images, float const* in, float* out, bool training) override;
    void backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) override;
    work dense_work(bool input_gradient) const override;

  private:
    std::size_t outputs(int images) const noexcept {
        return static_cast<std::size_t>(images) * static_cast<std::size_t>(options_.out);
    }

    options options_;
    gpu_compute const& with_;
    gpu_dropout dropout_;
    dnn_tensor out_, bias_shape_;
    dnn_object<cudnn::activation_handle> relu_;
    std::span<float const> weights_, bias_;
    std::span<float> weight_gradient_, bias_gradient_;
    gpu_floats masked_;
};

}  // namespace muster
