// A convolution 3x3 with a padding of 1 and optional ReLU, for many channels.
#pragma once

#include <cstdint>

#include "bench/network/kernel_table.hpp"
#include "bench/network/layer.hpp"
#include "bench/tools/aligned.hpp"

namespace muster {

/// Channels lie side by side in a pixel. Each of the 9 taps of the window is one matrix product over the pixels that it reaches
/// inside of the image, so that padding costs nothing: 100 of 144 multiplications of a 4x4 image are left.
class window_layer : public layer {
  public:
    struct options {
        std::string name;
        int in_channels = 1, out_channels = 1;
        int size = 4;  ///< the input's height and width: a multiple of the stride
        int stride = 1;
        bool relu = true;
        int max_batch = 64;
    };
    window_layer(options const& what, kernel_table const& kernels);

    std::string_view name() const override { return options_.name; }
    tensor_format in_format() const override { return format_of(options_.in_channels, options_.size); }
    tensor_format out_format() const override { return format_of(options_.out_channels, options_.size / options_.stride); }
    tensor_format in_gradient_format() const override { return in_format(); }
    std::vector<parameter_shape> parameters() const override;
    void bind(std::span<float const> parameters, std::span<float> gradients) override;
    void resample(random_stream const&, int) override {}
    float dropout_factor(int, int) const override { return 1; }
    void forward(int images, float const* in, float* out, bool training) override;
    void backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) override;
    work dense_work(bool input_gradient) const override;

  private:
    static constexpr int taps = 9;
    static tensor_format format_of(int channels, int size) {
        return {channels, size, size, size * size * channels, 1, size * channels, channels};
    }
    /// The pixels of an image that a tap connects.
    struct tap_pixels {
        std::vector<std::int32_t> in, out;
    };
    tap_pixels pixels_of(int tap) const;
    /// With few input channels a tap's product has little depth: all nine are gathered into one row a pixel, and are one product.
    bool gathers() const noexcept { return options_.in_channels * taps <= 64; }
    void gather(int images, float const* in);
    void gathered_forward(int images, float const* in, float* out);
    void gathered_weight_gradients(int images);
    void unpack_weight_gradients();
    void pack_weights();
    void mask(int images, float const* out, float const* out_gradient);
    void weight_gradients(int images, float const* in);
    void input_gradients(int images, float* in_gradient);
    float* tap_row(aligned_vector<float>& of, int tap, int in_channel) {
        return of.data() + (static_cast<std::size_t>(tap * options_.in_channels + in_channel)) *
                               static_cast<std::size_t>(options_.out_channels);
    }

    options options_;
    kernel_table const* kernels_;
    std::vector<tap_pixels> pixels_;
    std::span<float const> weights_, bias_;
    std::span<float> weight_gradient_, bias_gradient_;
    aligned_vector<float> tap_weights_, tap_gradients_;  // [tap][in][out]
    aligned_vector<float> gathered_;                     // [image][output pixel][tap][in], 0 outside of the image
    aligned_vector<float> masked_;                       // the output's gradient before ReLU
    aligned_vector<float> scratch_;                      // of the matrix product
    std::vector<float const*> in_rows_, weight_rows_;
    std::vector<float*> out_rows_;
};

}  // namespace muster
