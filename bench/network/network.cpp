#include "bench/network/network.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"

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

}  // namespace

network::network(std::string name, image_input const& input, int max_batch, kernel_table const& kernels,
                 std::vector<std::unique_ptr<layer>> layers)
    : name_(std::move(name)),
      input_(input),
      kernels_(&kernels),
      max_batch_(max_batch),
      layers_(std::move(layers)),
      table_(layers_) {
    make_activations();
    parameters_.resize(table_.total());
    gradients_.resize(table_.total());
    table_.bind(layers_, parameters_, gradients_);
    profile_.resize(layers_.size());
    row_.resize(static_cast<std::size_t>(input.width));
}

void network::make_activations() {
    auto const batch = static_cast<std::size_t>(max_batch_);
    activations_.emplace_back(batch * static_cast<std::size_t>(layers_.front()->in_format().image_step));
    activation_gradients_.emplace_back();
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        activations_.emplace_back(batch * static_cast<std::size_t>(layers_[i]->out_format().image_step));
        auto const gradient = i + 1 < layers_.size() ? layers_[i + 1]->in_gradient_format() : layers_[i]->out_format();
        activation_gradients_.emplace_back(batch * static_cast<std::size_t>(gradient.image_step));
    }
}

std::span<float> network::gradient(std::size_t index) noexcept {
    return gradients().subspan(table()[index].first, table()[index].shape.count());
}

void network::load(std::span<std::uint8_t const> images, int count) {
    stopwatch const watch(load_seconds_);
    auto const bytes = static_cast<std::size_t>(input_.bytes());
    expect(count > 0 && count <= max_batch_ && images.size() >= static_cast<std::size_t>(count) * bytes,
           "a batch fits the network");
    images_ = count;
    auto const& to = layers_.front()->in_format();
    float const factor = 1.0f / (255.0f * input_.deviation), offset = -input_.mean / input_.deviation;
    std::uint8_t const* from = images.data();
    for (int n = 0; n < count; ++n) {
        for (int c = 0; c < input_.channels; ++c) {
            for (int y = 0; y < input_.height; ++y, from += input_.width) {
                float* const row = activations_[0].data() + n * to.image_step + c * to.channel_step + y * to.row_step;
                bool const dense = to.pixel_step == 1;
                kernels_->normalise(from, input_.width, factor, offset, dense ? row : row_.data());
                for (int x = 0; x < input_.width && !dense; ++x) row[x * to.pixel_step] = row_[static_cast<std::size_t>(x)];
            }
        }
    }
}

void network::resample(std::uint64_t seed, std::uint64_t step) {
    stopwatch const watch(load_seconds_);
    for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i]->resample(random_stream(seed, 2 + i, step), images_);
}

std::span<float const> network::forward(bool training) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        double untimed = 0;  // the profile is of training
        stopwatch const watch(training ? profile_[i].forward : untimed);
        layers_[i]->forward(images_, activations_[i].data(), activations_[i + 1].data(), training);
    }
    return std::span<float const>(activations_.back()).first(static_cast<std::size_t>(images_ * output_stride()));
}

loss_result network::backward(std::span<std::uint8_t const> labels, ready_function const& ready, float share) {
    expect(labels.size() == static_cast<std::size_t>(images_), "one label an image");
    loss_result result;
    {
        stopwatch const watch(loss_seconds_);
        result = softmax_loss(activations_.back(), output_stride(), input_.classes, labels, activation_gradients_.back(),
                              share > 0 ? share : 1.0f / static_cast<float>(images_));
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
        {
            stopwatch const watch(profile_[i].backward);
            layers_[i]->backward(images_, activations_[i].data(), activations_[i + 1].data(), activation_gradients_[i + 1].data(),
                                 i == 0 ? nullptr : activation_gradients_[i].data());
        }
        auto const& rows = table_.of_layer(i);
        for (std::size_t t = 0; t < rows.count && ready; ++t) ready(rows.first + t);
    }
    return result;
}

void network::no_images(ready_function const& ready) {
    std::fill(gradients_.begin(), gradients_.end(), 0.0f);
    for (std::size_t i = 0; i < table().size() && ready; ++i) ready(i);
}

loss_result network::evaluate(std::span<std::uint8_t const> labels) const {
    expect(labels.size() == static_cast<std::size_t>(images_), "one label an image");
    return softmax_loss(activations_.back(), output_stride(), input_.classes, labels);
}

void network::reset_profile() {
    profile_.assign(layers_.size(), {});
    load_seconds_ = loss_seconds_ = 0;
}

}  // namespace muster
