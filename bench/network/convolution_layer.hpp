// One fused layer: convolution 5x5, optional dropout of whole channels, max-pooling 2x2, ReLU.
#pragma once

#include <cstdint>

#include "bench/network/kernel_table.hpp"
#include "bench/network/layer.hpp"
#include "bench/tools/aligned.hpp"

namespace muster {

/// What follows from max-pooling, ReLU and dropout being part of the layer: only a pixel that won its 2x2 and is positive passes
/// gradient back, and a dropped channel needs no convolution at all. Both are exact, so the layer computes what the separate ones
/// would, with a fraction of the multiplications: forward for the channels kept, backward for a list of winners.
class convolution_layer : public layer {
  public:
    struct options {
        std::string name;
        int in_channels = 1, out_channels = 1;
        int size = 0;                ///< the output's height and width before pooling: a multiple of 8
        float dropout = 0;           ///< probability that a channel is dropped; 0: none
        int in_row = 0;              ///< floats from one input row to the next: at least size + 7
        tensor_format out;           ///< where the pooled output goes; pixel_step 1
        tensor_format out_gradient;  ///< where backward finds the output's gradient
        int max_batch = 64;
    };
    /// Throws errc::internal on sizes the kernels cannot do.
    convolution_layer(options const& what, kernel_table const& kernels);

    std::string_view name() const override { return options_.name; }
    tensor_format in_format() const override;
    tensor_format out_format() const override { return options_.out; }
    /// Channels last, padded to 16, rows as far apart as the input's: see input_gradient_format.
    tensor_format in_gradient_format() const override;
    /// The same, before there is a layer to ask.
    static tensor_format input_gradient_format(int channels, int size, int in_row);

    std::vector<parameter_shape> parameters() const override;
    void bind(std::span<float const> parameters, std::span<float> gradients) override;
    void resample(random_stream const& stream, int images) override;
    float dropout_factor(int image, int unit) const override;
    void forward(int images, float const* in, float* out, bool training) override;
    void backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) override;
    work dense_work(bool input_gradient) const override;

  private:
    bool kept(int image, int channel) const noexcept { return kept_[image * options_.out_channels + channel] != 0; }
    gradient_list winners_of(int image, int channel, float const* out_gradient);
    void pack_weights();

    options options_;
    kernel_table const* kernels_;
    convolution_shape shape_;
    float keep_scale_;
    std::span<float const> weights_, bias_;
    std::span<float> weight_gradient_, bias_gradient_;
    std::vector<std::uint8_t> kept_;           // [image][channel]
    std::vector<std::uint8_t> winners_;        // [image][channel][pooled pixel]
    std::vector<std::uint16_t> channel_list_;  // the channels of one image that are computed
    std::vector<std::int32_t> list_offset_;    // one channel's gradient list
    std::vector<float> list_value_;
    aligned_vector<float> sums_;     // [out][in][5][padded_row]
    aligned_vector<float> flipped_;  // weights as the input gradient wants them: [out][25][padded_channels]
};

}  // namespace muster
