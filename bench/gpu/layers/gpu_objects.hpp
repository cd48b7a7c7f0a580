// Owners of cuDNN's descriptors, as the GPU layers need them. Make, set and destroy them.
#pragma once

#include <utility>

#include "bench/gpu/layers/gpu_compute.hpp"
#include "bench/network/layer.hpp"

namespace muster {

/// Owner of one descriptor. Move-only; gpu_compute outlives it.
template <typename Handle>
class dnn_object {
  public:
    dnn_object() = default;
    dnn_object(gpu_compute const& with, int (*create)(Handle*), int (*destroy)(Handle)) : destroy_(destroy) {
        with.check_dnn(create(&handle_), "cudnnCreate…Descriptor");
    }
    dnn_object(dnn_object&& other) noexcept : destroy_(other.destroy_), handle_(std::exchange(other.handle_, nullptr)) {}
    dnn_object& operator=(dnn_object&& other) noexcept {
        std::swap(destroy_, other.destroy_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~dnn_object() {
        if (handle_ != nullptr) destroy_(handle_);
    }
    Handle get() const noexcept { return handle_; }

  private:
    int (*destroy_)(Handle) = nullptr;
    Handle handle_ = nullptr;
};

/// Describes `images` images of floats, plane after plane without gaps.
class dnn_tensor {
  public:
    dnn_tensor() = default;
    dnn_tensor(gpu_compute const& with, tensor_format const& of)
        : with_(&with), of_(of), object_(with, with.dnn().create_tensor, with.dnn().destroy_tensor) {}
    void set_images(int images) {
        with_->check_dnn(
            with_->dnn().set_tensor(object_.get(), cudnn::planes, cudnn::type_f32, images, of_.channels, of_.height, of_.width),
            "cudnnSetTensor4dDescriptor");
    }
    cudnn::tensor_handle get() const noexcept { return object_.get(); }

  private:
    gpu_compute const* with_ = nullptr;
    tensor_format of_;
    dnn_object<cudnn::tensor_handle> object_;
};

/// A bias: one float a channel, added to every pixel of every image.
inline dnn_tensor make_dnn_bias(gpu_compute const& with, int channels) {
    dnn_tensor made(with, {channels, 1, 1, channels, 1, 1, 1});
    made.set_images(1);
    return made;
}

inline dnn_object<cudnn::activation_handle> make_dnn_relu(gpu_compute const& with) {
    auto const& dnn = with.dnn();
    dnn_object<cudnn::activation_handle> made(with, dnn.create_activation, dnn.destroy_activation);
    with.check_dnn(dnn.set_activation(made.get(), cudnn::activation_relu, cudnn::nan_propagates, 0),
                   "cudnnSetActivationDescriptor");
    return made;
}

/// The largest of 2x2 pixels.
inline dnn_object<cudnn::pooling_handle> make_dnn_pooling(gpu_compute const& with) {
    auto const& dnn = with.dnn();
    dnn_object<cudnn::pooling_handle> made(with, dnn.create_pooling, dnn.destroy_pooling);
    with.check_dnn(dnn.set_pooling(made.get(), cudnn::pooling_max_deterministic, cudnn::nan_propagates, 2, 2, 0, 0, 2, 2),
                   "cudnnSetPooling2dDescriptor");
    return made;
}

/// Images as the GPU layers hand them on: plane after plane without gaps.
inline tensor_format planes_of(int channels, int height, int width) {
    return {channels, height, width, channels * height * width, height * width, width, 1};
}

inline constexpr float dnn_one = 1, dnn_zero = 0;

}  // namespace muster
