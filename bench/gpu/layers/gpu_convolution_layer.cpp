#include "bench/gpu/layers/gpu_convolution_layer.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"

namespace muster {

namespace {

/// The fastest that is deterministic and does with our workspace; that it stays in f32 is said by the convolution. cuDNN gives them in the order of their expected time.
template <typename Ask>
int choose_algorithm(std::string_view what, Ask&& ask) {
    std::array<cudnn::algorithm, 16> found{};
    int count = 0;
    ask(static_cast<int>(found.size()), &count, found.data());
    for (int i = 0; i < count; ++i) {
        auto const& each = found[static_cast<std::size_t>(i)];
        if (each.status == cudnn::success && each.determinism == cudnn::deterministic &&
            each.memory <= gpu_compute::workspace_bytes)
            return each.number;
    }
    throw error(errc::unavailable, fmt::format("cuDNN has no deterministic algorithm for {}; train with --device cpu", what));
}

}  // namespace

gpu_convolution_layer::gpu_convolution_layer(options const& what, gpu_compute const& with, cuda::step_arguments const* step)
    : options_(what),
      with_(with),
      dropout_(with, what.dropout, step, what.number),
      in_(with, in_format()),
      full_(with, full_format()),
      out_(with, out_format()),
      bias_shape_(make_dnn_bias(with, what.out_channels)),
      filter_(with, with.dnn().create_filter, with.dnn().destroy_filter),
      convolution_(with, with.dnn().create_convolution, with.dnn().destroy_convolution),
      relu_(make_dnn_relu(with)),
      pooling_(make_dnn_pooling(with)) {
    auto const& dnn = with.dnn();
    with.check_dnn(dnn.set_filter(filter_.get(), cudnn::type_f32, cudnn::planes, what.out_channels, what.in_channels, what.window,
                                  what.window),
                   "cudnnSetFilter4dDescriptor");
    with.check_dnn(dnn.set_convolution(convolution_.get(), what.padding, what.padding, what.stride, what.stride, 1, 1,
                                       cudnn::cross_correlation, cudnn::type_f32),
                   "cudnnSetConvolution2dDescriptor");
    with.check_dnn(dnn.set_convolution_math(convolution_.get(), cudnn::math_fma), "cudnnSetConvolutionMathType");
    auto const count = static_cast<std::size_t>(what.max_batch) * static_cast<std::size_t>(full_format().image_step);
    masked_ = gpu_floats(with.on(), count);
    if (what.pool) before_pooling_ = gpu_floats(with.on(), count);
}

tensor_format gpu_convolution_layer::in_format() const {
    return planes_of(options_.in_channels, options_.size, options_.size);
}

tensor_format gpu_convolution_layer::full_format() const {
    int const size = (options_.size + 2 * options_.padding - options_.window) / options_.stride + 1;
    return planes_of(options_.out_channels, size, size);
}

tensor_format gpu_convolution_layer::out_format() const {
    auto const full = full_format();
    return options_.pool ? planes_of(full.channels, full.height / 2, full.width / 2) : full;
}

std::vector<parameter_shape> gpu_convolution_layer::parameters() const {
    int const fan_in = options_.in_channels * options_.window * options_.window;
    return {{options_.name + ".weight", {options_.out_channels, options_.in_channels, options_.window, options_.window}, fan_in},
            {options_.name + ".bias", {options_.out_channels}, fan_in}};
}

void gpu_convolution_layer::bind(std::span<float const> parameters, std::span<float> gradients) {
    auto const weights = parameters.size() - static_cast<std::size_t>(options_.out_channels);
    expect(weights == this->parameters()[0].count() && gradients.size() == parameters.size(), "bound memory fits the layer");
    weights_ = parameters.first(weights);
    bias_ = parameters.subspan(weights);
    weight_gradient_ = gradients.first(weights);
    bias_gradient_ = gradients.subspan(weights);
}

float gpu_convolution_layer::dropout_factor(int image, int unit) const {
    return dropout_.factor(static_cast<std::uint64_t>(image) * static_cast<std::uint64_t>(options_.out_channels) +
                           static_cast<std::uint64_t>(unit));
}

void gpu_convolution_layer::set_images(int images) {
    if (images == images_) return;
    in_.set_images(images);
    full_.set_images(images);
    out_.set_images(images);
    images_ = images;
    if (!chosen_.contains(images)) chosen_.emplace(images, choose());
}

gpu_convolution_layer::algorithms gpu_convolution_layer::choose() const {
    using f = cudnn::functions;
    auto const what = fmt::format("the convolution {}", options_.name);
    algorithms out;
    out.forward = choose_algorithm(what, [&](int most, int* count, cudnn::algorithm* found) {
        with_.call("cudnnGetConvolutionForwardAlgorithm_v7", &f::forward_algorithms, in_.get(), filter_.get(), convolution_.get(),
                   full_.get(), most, count, found);
    });
    out.data = choose_algorithm(what + "'s gradient of its input", [&](int most, int* count, cudnn::algorithm* found) {
        with_.call("cudnnGetConvolutionBackwardDataAlgorithm_v7", &f::data_algorithms, filter_.get(), full_.get(),
                   convolution_.get(), in_.get(), most, count, found);
    });
    out.filter = choose_algorithm(what + "'s gradient of its weights", [&](int most, int* count, cudnn::algorithm* found) {
        with_.call("cudnnGetConvolutionBackwardFilterAlgorithm_v7", &f::filter_algorithms, in_.get(), full_.get(),
                   convolution_.get(), filter_.get(), most, count, found);
    });
    return out;
}

void gpu_convolution_layer::forward(int images, float const* in, float* out, bool training) {
    using f = cudnn::functions;
    set_images(images);
    float* const full = options_.pool ? before_pooling_.data() : out;
    with_.call("cudnnConvolutionForward", &f::convolution_forward, &dnn_one, in_.get(), in, filter_.get(), weights_.data(),
               convolution_.get(), chosen_.at(images).forward, with_.workspace(), gpu_compute::workspace_bytes, &dnn_zero,
               full_.get(), full);
    with_.call("cudnnAddTensor", &f::add_tensor, &dnn_one, bias_shape_.get(), bias_.data(), &dnn_one, full_.get(), full);
    with_.call("cudnnActivationForward", &f::activation_forward, relu_.get(), &dnn_one, full_.get(), full, &dnn_zero, full_.get(),
               full);
    auto const shape = full_format();
    if (training && dropout_.drops())
        dropout_.apply(full, full, static_cast<std::size_t>(images) * static_cast<std::size_t>(shape.image_step),
                       shape.channel_step);
    if (options_.pool)
        with_.call("cudnnPoolingForward", &f::pooling_forward, pooling_.get(), &dnn_one, full_.get(), full, &dnn_zero, out_.get(),
                   out);
}

void gpu_convolution_layer::backward(int images, float const* in, float const* out, float const* out_gradient,
                                     float* in_gradient) {
    using f = cudnn::functions;
    set_images(images);
    auto const shape = full_format();
    float const* const full = options_.pool ? before_pooling_.data() : out;
    float const* gradient = out_gradient;
    if (options_.pool) {
        with_.call("cudnnPoolingBackward", &f::pooling_backward, pooling_.get(), &dnn_one, out_.get(), out, out_.get(), gradient,
                   full_.get(), full, &dnn_zero, full_.get(), masked_.data());
        gradient = masked_.data();
    }
    if (dropout_.drops()) {
        dropout_.apply(gradient, masked_.data(), static_cast<std::size_t>(images) * static_cast<std::size_t>(shape.image_step),
                       shape.channel_step);
        gradient = masked_.data();
    }
    // A dropped output is 0, which ReLU's gradient takes for negative: its factor has already stopped the gradient.
    with_.call("cudnnActivationBackward", &f::activation_backward, relu_.get(), &dnn_one, full_.get(), full, full_.get(),
               gradient, full_.get(), full, &dnn_zero, full_.get(), masked_.data());
    with_.call("cudnnConvolutionBackwardBias", &f::convolution_backward_bias, &dnn_one, full_.get(), masked_.data(), &dnn_zero,
               bias_shape_.get(), bias_gradient_.data());
    with_.call("cudnnConvolutionBackwardFilter", &f::convolution_backward_filter, &dnn_one, in_.get(), in, full_.get(),
               masked_.data(), convolution_.get(), chosen_.at(images).filter, with_.workspace(), gpu_compute::workspace_bytes,
               &dnn_zero, filter_.get(), weight_gradient_.data());
    if (in_gradient != nullptr)
        with_.call("cudnnConvolutionBackwardData", &f::convolution_backward_data, &dnn_one, filter_.get(), weights_.data(),
                   full_.get(), masked_.data(), convolution_.get(), chosen_.at(images).data, with_.workspace(),
                   gpu_compute::workspace_bytes, &dnn_zero, in_.get(), in_gradient);
}

layer::work gpu_convolution_layer::dense_work(bool input_gradient) const {
    double const pass =
        2.0 * options_.window * options_.window * options_.in_channels * static_cast<double>(full_format().elements());
    return {pass, input_gradient ? 2 * pass : pass};
}

}  // namespace muster
