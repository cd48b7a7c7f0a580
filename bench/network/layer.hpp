// The interface of a layer of the training benchmark. The CPU layers work on plain pointers through a kernel_table; layers on
// another device would implement the same interface with their own memory.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/tools/random.hpp"

namespace muster {

/// Where the elements of a batch lie: element (n, c, y, x) of image n is at n*image_step + c*channel_step + y*row_step +
/// x*pixel_step, in floats.
struct tensor_format {
    int channels = 0, height = 1, width = 1;
    int image_step = 0, channel_step = 0, row_step = 0, pixel_step = 1;
    int elements() const noexcept { return channels * height * width; }  ///< an image's, without padding
    bool operator==(tensor_format const&) const = default;
};

/// One parameter tensor, in PyTorch's order of dimensions.
struct parameter_shape {
    std::string name;             ///< "conv1.weight"
    std::vector<int> dimensions;  ///< {10, 1, 5, 5}
    int fan_in = 0;               ///< what the default initialisation divides by
    std::size_t count() const noexcept;
};

/// A layer owns its scratch, sized at construction for the largest batch: forward and backward allocate nothing. One thread at a
/// time.
class layer {
  public:
    virtual ~layer() = default;

    virtual std::string_view name() const = 0;
    virtual tensor_format in_format() const = 0;           ///< of what forward reads
    virtual tensor_format out_format() const = 0;          ///< of what forward writes; padding is never written
    virtual tensor_format in_gradient_format() const = 0;  ///< of what backward writes: the format the layer before must accept

    /// Weights first, then biases; the memory bound is these, one after the other.
    virtual std::vector<parameter_shape> parameters() const = 0;
    /// Where parameters and gradients live; both must outlive the layer. Sizes as parameters() says.
    virtual void bind(std::span<float const> parameters, std::span<float> gradients) = 0;

    /// Draws new dropout masks for up to `images` images. Without a call the last ones stay, so that a pass can be repeated.
    virtual void resample(random_stream const& stream, int images) = 0;
    /// The factor dropout applies to channel or unit `unit` of image n: 0 or 1/(1-p); 1 in a layer without dropout.
    virtual float dropout_factor(int image, int unit) const = 0;

    /// `training` applies the dropout masks.
    virtual void forward(int images, float const* in, float* out, bool training) = 0;

    /// Overwrites the bound gradients with the sum over the images, and `in_gradient` unless it is null. Uses what the last
    /// training forward left in the scratch; `in` and `out` are what it read and wrote.
    virtual void backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) = 0;

    /// Floating-point operations of one image's forward and backward pass as the formulas stand, multiply and add counted as two.
    struct work {
        double forward, backward;
    };
    virtual work dense_work(bool input_gradient) const = 0;
};

}  // namespace muster
