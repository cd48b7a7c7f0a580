#include "bench/gpu/layers/gpu_linear_layer.hpp"

#include "base/error.hpp"

namespace muster {

gpu_linear_layer::gpu_linear_layer(options const& what, gpu_compute const& with, cuda::step_arguments const* step)
    : options_(what),
      with_(with),
      dropout_(with, what.dropout, step, what.number),
      out_(with, out_format()),
      bias_shape_(make_dnn_bias(with, what.out)),
      relu_(make_dnn_relu(with)),
      masked_(with.on(), outputs(what.max_batch)) {}

std::vector<parameter_shape> gpu_linear_layer::parameters() const {
    return {{options_.name + ".weight", {options_.out, options_.in}, options_.in},
            {options_.name + ".bias", {options_.out}, options_.in}};
}

void gpu_linear_layer::bind(std::span<float const> parameters, std::span<float> gradients) {
    auto const weights = static_cast<std::size_t>(options_.in) * static_cast<std::size_t>(options_.out);
    expect(parameters.size() == weights + static_cast<std::size_t>(options_.out) && gradients.size() == parameters.size(),
           "bound memory fits the layer");
    weights_ = parameters.first(weights);
    bias_ = parameters.subspan(weights);
    weight_gradient_ = gradients.first(weights);
    bias_gradient_ = gradients.subspan(weights);
}

float gpu_linear_layer::dropout_factor(int image, int unit) const {
    return dropout_.factor(outputs(image) + static_cast<std::uint64_t>(unit));
}

// cuBLAS counts by columns: a row-major matrix of [rows][columns] is its columns x rows, transposed.
void gpu_linear_layer::forward(int images, float const* in, float* out, bool training) {
    using f = cudnn::functions;
    out_.set_images(images);
    with_.multiply(
        {true, false, options_.out, images, options_.in, weights_.data(), options_.in, in, options_.in, out, options_.out});
    with_.call("cudnnAddTensor", &f::add_tensor, &dnn_one, bias_shape_.get(), bias_.data(), &dnn_one, out_.get(), out);
    if (options_.relu)
        with_.call("cudnnActivationForward", &f::activation_forward, relu_.get(), &dnn_one, out_.get(), out, &dnn_zero,
                   out_.get(), out);
    if (training && dropout_.drops()) dropout_.apply(out, out, outputs(images), 1);
}

void gpu_linear_layer::backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) {
    using f = cudnn::functions;
    out_.set_images(images);
    float const* gradient = out_gradient;
    if (dropout_.drops()) {
        dropout_.apply(gradient, masked_.data(), outputs(images), 1);
        gradient = masked_.data();
    }
    if (options_.relu) {  // a dropped output is 0 too, and its factor has already stopped the gradient
        with_.call("cudnnActivationBackward", &f::activation_backward, relu_.get(), &dnn_one, out_.get(), out, out_.get(),
                   gradient, out_.get(), out, &dnn_zero, out_.get(), masked_.data());
        gradient = masked_.data();
    }
    with_.call("cudnnConvolutionBackwardBias", &f::convolution_backward_bias, &dnn_one, out_.get(), gradient, &dnn_zero,
               bias_shape_.get(), bias_gradient_.data());
    with_.multiply({false, true, options_.in, options_.out, images, in, options_.in, gradient, options_.out,
                    weight_gradient_.data(), options_.in});
    if (in_gradient != nullptr)
        with_.multiply({false, false, options_.in, images, options_.out, weights_.data(), options_.in, gradient, options_.out,
                        in_gradient, options_.in});
}

layer::work gpu_linear_layer::dense_work(bool input_gradient) const {
    double const pass = 2.0 * options_.in * options_.out;
    return {pass, input_gradient ? 2 * pass : pass};
}

}  // namespace muster
