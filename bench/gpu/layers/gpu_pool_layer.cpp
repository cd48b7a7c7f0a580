#include "bench/gpu/layers/gpu_pool_layer.hpp"

#include <bit>

namespace muster {

gpu_pool_layer::gpu_pool_layer(options const& what, gpu_compute const& with, cuda::step_arguments const* step)
    : options_(what),
      with_(with),
      dropout_(with, what.dropout, step, what.number),
      in_(with, in_format()),
      out_(with, out_format()),
      pooling_(make_dnn_pooling(with)) {
    if (!dropout_.drops()) return;
    pooled_ = gpu_floats(with.on(), outputs(what.max_batch));
    masked_ = gpu_floats(with.on(), outputs(what.max_batch));
}

std::size_t gpu_pool_layer::outputs(int images) const noexcept {
    return static_cast<std::size_t>(images) * static_cast<std::size_t>(out_format().image_step);
}

float gpu_pool_layer::dropout_factor(int image, int unit) const {
    return dropout_.factor(outputs(image) + static_cast<std::uint64_t>(unit));
}

void gpu_pool_layer::set_images(int images) {
    if (images == images_) return;
    in_.set_images(images);
    out_.set_images(images);
    images_ = images;
}

void gpu_pool_layer::forward(int images, float const* in, float* out, bool training) {
    set_images(images);
    float* const to = dropout_.drops() ? pooled_.data() : out;
    with_.call("cudnnPoolingForward", &cudnn::functions::pooling_forward, pooling_.get(), &dnn_one, in_.get(), in, &dnn_zero,
               out_.get(), to);
    if (!dropout_.drops()) return;
    if (training)
        dropout_.apply(to, out, outputs(images), 1);
    else
        with_.check(with_.driver().copy_device_to_device(std::bit_cast<cuda::device_address>(out),
                                                         std::bit_cast<cuda::device_address>(to), outputs(images) * sizeof(float),
                                                         with_.stream()),
                    "cuMemcpyDtoDAsync");
}

void gpu_pool_layer::backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) {
    if (in_gradient == nullptr) return;
    set_images(images);
    bool const drops = dropout_.drops();
    if (drops) dropout_.apply(out_gradient, masked_.data(), outputs(images), 1);
    float const* const pooled = drops ? pooled_.data() : out;
    float const* const gradient = drops ? masked_.data() : out_gradient;
    with_.call("cudnnPoolingBackward", &cudnn::functions::pooling_backward, pooling_.get(), &dnn_one, out_.get(), pooled,
               out_.get(), gradient, in_.get(), in, &dnn_zero, in_.get(), in_gradient);
}

}  // namespace muster
