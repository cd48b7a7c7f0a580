// Max-pooling 2x2 with optional dropout of single outputs behind it.
#pragma once

#include <cstdint>

#include "bench/network/layer.hpp"

namespace muster {

/// Takes images whose channels lie side by side in a pixel, as window_layer writes them. The first of equal maxima in reading order wins.
class max_pool_layer : public layer {
  public:
    struct options {
        std::string name;
        int channels = 1;
        int size = 2;         ///< the input's height and width: even
        bool planes = false;  ///< writes plane after plane, as a linear layer takes them; else channels side by side
        float dropout = 0;    ///< probability that an output is dropped; 0: none
        int max_batch = 64;
    };
    explicit max_pool_layer(options const& what);

    std::string_view name() const override { return options_.name; }
    tensor_format in_format() const override;
    tensor_format out_format() const override;
    tensor_format in_gradient_format() const override { return in_format(); }
    std::vector<parameter_shape> parameters() const override { return {}; }
    void bind(std::span<float const>, std::span<float>) override {}
    void resample(random_stream const& stream, int images) override;
    float dropout_factor(int image, int unit) const override;  ///< `unit` counts plane after plane
    void forward(int images, float const* in, float* out, bool training) override;
    void backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) override;
    work dense_work(bool) const override { return {0, 0}; }

  private:
    int outputs() const noexcept { return options_.channels * (options_.size / 2) * (options_.size / 2); }
    void forward_pixel(float const* in, float* out, int step, std::uint8_t* winner) const;

    options options_;
    float keep_scale_;
    std::vector<std::uint8_t> winners_;  // [image][pooled pixel][channel]
    std::vector<float> factor_;          // dropout's, [image][channel][pooled pixel]
};

}  // namespace muster
