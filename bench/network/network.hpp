// A network of layers: runs them forward and backward over a batch of images, with all parameters in one array.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/network/kernel_table.hpp"
#include "bench/network/layer.hpp"
#include "bench/network/loss.hpp"
#include "bench/network/parameter_table.hpp"
#include "bench/tools/aligned.hpp"

namespace muster {

/// The images that a network takes, as bytes: planes of rows, normalised to (byte / 255 - mean) / deviation.
struct image_input {
    int channels = 1, height = 28, width = 28;
    float mean = 0, deviation = 1;
    int classes = 10;
    int bytes() const noexcept { return channels * height * width; }
    bool operator==(image_input const&) const = default;
};

/// Layers in a row, then log_softmax and negative log-likelihood.
///
/// All parameters lie in one array and all gradients in another, the layer whose gradient is ready first at the front, so that a
/// reducer sends contiguous pieces. One thread at a time.
class network {
  public:
    /// Each layer's output format is the next one's input format, and the first one's takes `input`.
    network(std::string name, image_input const& input, int max_batch, kernel_table const& kernels,
            std::vector<std::unique_ptr<layer>> layers);
    network(network&&) = default;

    std::string const& name() const noexcept { return name_; }
    image_input const& input() const noexcept { return input_; }

    /// Places are in parameters() and gradients().
    std::span<parameter_place const> table() const noexcept { return table_.rows(); }
    std::span<float> parameters() noexcept { return parameters_; }
    std::span<float> gradients() noexcept { return gradients_; }
    std::span<float> gradient(std::size_t index) noexcept;

    void initialise(std::uint64_t seed) { table_.initialise(seed, parameters_); }

    /// Loads `count` images of input().bytes() each. Throws errc::internal beyond max_batch.
    void load(std::span<std::uint8_t const> images, int count);
    /// New dropout masks. `step` numbers the training steps over all ranks.
    void resample(std::uint64_t seed, std::uint64_t step);
    /// Outputs before log_softmax, one row of output_stride() floats an image.
    std::span<float const> forward(bool training);
    int output_stride() const noexcept { return layers_.back()->out_format().image_step; }

    /// Called as soon as the gradients of one parameter tensor are complete, with its index in table().
    using ready_function = std::function<void(std::size_t)>;
    /// Loss of the images of the last forward(true), and the gradients of their summed loss times `share`; 0 stands for 1/images,
    /// that is the mean. A rank without images in a step calls no_images() instead.
    loss_result backward(std::span<std::uint8_t const> labels, ready_function const& ready = {}, float share = 0);
    /// Gradients of zero, all ready.
    void no_images(ready_function const& ready);
    /// Loss and hits of the last forward without gradients.
    loss_result evaluate(std::span<std::uint8_t const> labels) const;

    std::span<std::unique_ptr<layer> const> layers() const noexcept { return layers_; }

    /// Where the time of training passes went since construction or reset, in seconds.
    struct profile_row {
        double forward = 0, backward = 0;
    };
    std::span<profile_row const> profile() const noexcept { return profile_; }
    double load_seconds() const noexcept { return load_seconds_; }
    double loss_seconds() const noexcept { return loss_seconds_; }
    void reset_profile();

  private:
    void make_activations();

    std::string name_;
    image_input input_;
    kernel_table const* kernels_;
    int max_batch_;
    int images_ = 0;
    std::vector<std::unique_ptr<layer>> layers_;               // in order of the forward pass
    std::vector<aligned_vector<float>> activations_;           // [0] the input, [i + 1] what layer i writes
    std::vector<aligned_vector<float>> activation_gradients_;  // [i] of activations_[i]; [0] is empty
    parameter_table table_;
    aligned_vector<float> parameters_, gradients_;
    std::vector<profile_row> profile_;
    std::vector<float> row_;  // one row of an image, where its pixels do not follow each other in the input
    double load_seconds_ = 0, loss_seconds_ = 0;
};

}  // namespace muster
