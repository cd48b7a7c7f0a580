#include "bench/network/mnist_network.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.hpp"
#include "bench/network/convolution_layer.hpp"
#include "bench/network/linear_layer.hpp"

namespace muster {

namespace {

// Adds the time from its construction to its destruction to a sum of seconds.
class stopwatch {
  public:
    explicit stopwatch(double& sum) : sum_(sum) {}
    stopwatch(stopwatch const&) = delete;
    stopwatch& operator=(stopwatch const&) = delete;
    ~stopwatch() { sum_ += std::chrono::duration<double>(clock::now() - start_).count(); }

  private:
    using clock = std::chrono::steady_clock;
    double& sum_;
    clock::time_point start_ = clock::now();
};

constexpr int input_row = 32, input_plane = 28 * input_row;
constexpr int middle_row = 16, middle_plane = 12 * middle_row;  // a row is one cache line, and no load of a window leaves it

std::vector<std::unique_ptr<layer>> make_layers(int batch, kernel_table const& kernels, float dropout) {
    tensor_format const middle{10, 12, 12, 10 * middle_plane, middle_plane, middle_row, 1};
    tensor_format const flat{20, 4, 4, 320, 16, 4, 1};
    convolution_layer::options conv1{"conv1", 1, 10, 24, 0, input_row, middle, {}, batch};
    convolution_layer::options conv2{"conv2", 10, 20, 8, dropout, middle_row, flat, flat, batch};
    conv1.out_gradient = convolution_layer::input_gradient_format(10, 8, middle_row);
    std::vector<std::unique_ptr<layer>> layers;
    layers.push_back(std::make_unique<convolution_layer>(conv1, kernels));
    layers.push_back(std::make_unique<convolution_layer>(conv2, kernels));
    layers.push_back(std::make_unique<linear_layer>(linear_layer::options{"fc1", 320, 50, true, dropout, batch}, kernels));
    layers.push_back(std::make_unique<linear_layer>(linear_layer::options{"fc2", 50, 10, false, 0, batch}, kernels));
    return layers;
}

}  // namespace

mnist_network::mnist_network(int max_batch, kernel_table const& kernels, float dropout)
    : kernels_(&kernels), max_batch_(max_batch), layers_(make_layers(max_batch, kernels, dropout)) {
    auto const batch = static_cast<std::size_t>(max_batch);
    activations_.emplace_back(batch * input_plane);
    activation_gradients_.emplace_back();
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        activations_.emplace_back(batch * static_cast<std::size_t>(layers_[i]->out_format().image_step));
        auto const gradient = i + 1 < layers_.size() ? layers_[i + 1]->in_gradient_format() : layers_[i]->out_format();
        activation_gradients_.emplace_back(batch * static_cast<std::size_t>(gradient.image_step));
    }
    profile_.resize(layers_.size());

    // The last layer's gradients are ready first.
    std::size_t total = 0;
    first_of_layer_.resize(layers_.size());
    for (std::size_t i = layers_.size(); i-- > 0;) {
        first_of_layer_[i] = table_.size();
        for (auto& shape : layers_[i]->parameters()) {
            auto const count = shape.count();
            table_.push_back({std::move(shape), total});
            total += count;
        }
    }
    parameters_.resize(total);
    gradients_.resize(total);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        auto const& weights = table_[first_of_layer_[i]];
        auto const count = weights.shape.count() + table_[first_of_layer_[i] + 1].shape.count();
        layers_[i]->bind(parameters().subspan(weights.first, count), gradients().subspan(weights.first, count));
    }
}

std::span<float> mnist_network::gradient(std::size_t index) noexcept {
    return gradients().subspan(table_[index].first, table_[index].shape.count());
}

void mnist_network::initialise(std::uint64_t seed) {
    random_stream const stream(seed, 1);
    std::uint64_t draw = 0;
    for (auto first : first_of_layer_) {
        for (std::size_t i = first; i < first + 2; ++i) {
            float const bound = 1.0f / std::sqrt(static_cast<float>(table_[i].shape.fan_in));
            for (float& p : parameters().subspan(table_[i].first, table_[i].shape.count()))
                p = bound * (2.0f * stream.uniform(draw++) - 1.0f);
        }
    }
}

void mnist_network::load(std::span<std::uint8_t const> images, int count) {
    stopwatch const watch(load_seconds_);
    expect(count > 0 && count <= max_batch_ && images.size() >= static_cast<std::size_t>(count) * image_bytes,
           "a batch fits the network");
    images_ = count;
    constexpr float factor = 1.0f / (255.0f * deviation), offset = -mean / deviation;
    for (int n = 0; n < count; ++n) {
        for (int y = 0; y < 28; ++y)
            kernels_->normalise(images.data() + n * image_bytes + y * 28, 28, factor, offset,
                                activations_[0].data() + n * input_plane + y * input_row);
    }
}

void mnist_network::resample(std::uint64_t seed, std::uint64_t step) {
    stopwatch const watch(load_seconds_);
    for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i]->resample(random_stream(seed, 2 + i, step), images_);
}

std::span<float const> mnist_network::forward(bool training) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        double untimed = 0;  // the profile is of training
        stopwatch const watch(training ? profile_[i].forward : untimed);
        layers_[i]->forward(images_, activations_[i].data(), activations_[i + 1].data(), training);
    }
    return std::span<float const>(activations_.back()).first(static_cast<std::size_t>(images_ * output_stride()));
}

loss_result mnist_network::backward(std::span<std::uint8_t const> labels, ready_function const& ready, float share) {
    expect(labels.size() == static_cast<std::size_t>(images_), "one label an image");
    loss_result result;
    {
        stopwatch const watch(loss_seconds_);
        result = softmax_loss(activations_.back(), output_stride(), classes, labels, activation_gradients_.back(),
                              share > 0 ? share : 1.0f / static_cast<float>(images_));
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
        {
            stopwatch const watch(profile_[i].backward);
            layers_[i]->backward(images_, activations_[i].data(), activations_[i + 1].data(), activation_gradients_[i + 1].data(),
                                 i == 0 ? nullptr : activation_gradients_[i].data());
        }
        if (ready) {
            ready(first_of_layer_[i]);
            ready(first_of_layer_[i] + 1);
        }
    }
    return result;
}

void mnist_network::no_images(ready_function const& ready) {
    std::fill(gradients_.begin(), gradients_.end(), 0.0f);
    for (std::size_t i = 0; i < table_.size() && ready; ++i) ready(i);
}

loss_result mnist_network::evaluate(std::span<std::uint8_t const> labels) const {
    expect(labels.size() == static_cast<std::size_t>(images_), "one label an image");
    return softmax_loss(activations_.back(), output_stride(), classes, labels);
}

void mnist_network::reset_profile() {
    profile_.assign(layers_.size(), {});
    load_seconds_ = loss_seconds_ = 0;
}

}  // namespace muster
