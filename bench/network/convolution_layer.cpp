#include "bench/network/convolution_layer.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace muster {

convolution_layer::convolution_layer(options const& what, kernel_table const& kernels)
    : options_(what),
      kernels_(&kernels),
      shape_{what.in_channels,
             what.in_row,
             what.in_row * (what.size + convolution_window - 1),
             what.out_channels,
             what.size,
             what.size,
             what.out.row_step,
             what.out.channel_step},
      keep_scale_(1.0f / (1.0f - what.dropout)) {
    expect(what.size > 0 && what.size % 8 == 0, "a convolution's output size is a multiple of 8");
    expect(what.in_row >= what.size + padded_row - 1, "a convolution's input rows leave room for the last window's load");
    expect(what.in_channels <= padded_channels, "a convolution has at most 16 input channels");
    expect(what.out.pixel_step == 1 && what.out.channels == what.out_channels && what.out.height == what.size / 2,
           "a convolution's output format fits its size");
    auto const pooled = static_cast<std::size_t>(what.out.height * what.out.width);
    auto const batch = static_cast<std::size_t>(what.max_batch), channels = static_cast<std::size_t>(what.out_channels);
    kept_.assign(batch * channels, 1);
    winners_.assign(batch * channels * pooled, no_winner);
    channel_list_.resize(channels);
    list_offset_.resize(pooled + 1);  // the list is built without branches and writes one past its end
    list_value_.resize(pooled + 1);
    sums_.resize(channels * static_cast<std::size_t>(what.in_channels * convolution_window * padded_row));
    flipped_.assign(channels * convolution_taps * padded_channels, 0.0f);
}

tensor_format convolution_layer::in_format() const {
    int const size = options_.size + convolution_window - 1;
    return {options_.in_channels, size, size, shape_.in_plane * options_.in_channels, shape_.in_plane, options_.in_row, 1};
}

tensor_format convolution_layer::input_gradient_format(int channels, int size, int in_row) {
    int const in_size = size + convolution_window - 1;
    return {channels, in_size, in_size, in_size * in_row * padded_channels, 1, in_row * padded_channels, padded_channels};
}

tensor_format convolution_layer::in_gradient_format() const {
    return input_gradient_format(options_.in_channels, options_.size, options_.in_row);
}

std::vector<parameter_shape> convolution_layer::parameters() const {
    int const fan_in = options_.in_channels * convolution_taps;
    return {{options_.name + ".weight",
             {options_.out_channels, options_.in_channels, convolution_window, convolution_window},
             fan_in},
            {options_.name + ".bias", {options_.out_channels}, fan_in}};
}

void convolution_layer::bind(std::span<float const> parameters, std::span<float> gradients) {
    auto const weights = parameters.size() - static_cast<std::size_t>(options_.out_channels);
    expect(weights == this->parameters()[0].count() && gradients.size() == parameters.size(), "bound memory fits the layer");
    weights_ = parameters.first(weights);
    bias_ = parameters.subspan(weights);
    weight_gradient_ = gradients.first(weights);
    bias_gradient_ = gradients.subspan(weights);
}

void convolution_layer::resample(random_stream const& stream, int images) {
    if (options_.dropout == 0) return;
    auto const count = static_cast<std::size_t>(images * options_.out_channels);
    for (std::size_t i = 0; i < count; ++i) kept_[i] = stream.uniform(i) >= options_.dropout;
}

float convolution_layer::dropout_factor(int image, int unit) const {
    if (options_.dropout == 0) return 1;
    return kept(image, unit) ? keep_scale_ : 0;
}

void convolution_layer::forward(int images, float const* in, float* out, bool training) {
    bool const drops = training && options_.dropout > 0;
    float const scale = drops ? keep_scale_ : 1.0f;
    int const image_step = in_format().image_step, pooled = options_.out.height * options_.out.width;
    for (int n = 0; n < images; ++n) {
        float* const to = out + n * options_.out.image_step;
        int count = 0;
        for (int c = 0; c < options_.out_channels; ++c) {
            if (!drops || kept(n, c)) {
                channel_list_[count++] = static_cast<std::uint16_t>(c);
                continue;
            }
            for (int y = 0; y < options_.out.height; ++y)
                std::fill_n(to + c * options_.out.channel_step + y * options_.out.row_step, options_.out.width, 0.0f);
        }
        kernels_->convolution_forward(shape_, in + n * image_step, weights_.data(), bias_.data(), channel_list_.data(), count,
                                      scale, to, winners_.data() + n * options_.out_channels * pooled);
    }
}

// The pixels of one channel that pass gradient: without a branch, since which they are cannot be predicted.
gradient_list convolution_layer::winners_of(int image, int channel, float const* out_gradient) {
    auto const& g = options_.out_gradient;
    int const height = options_.out.height, width = options_.out.width, row = options_.in_row;
    std::uint8_t const* code = winners_.data() + (image * options_.out_channels + channel) * height * width;
    float const* const from = out_gradient + image * g.image_step + channel * g.channel_step;
    float const scale = options_.dropout > 0 ? keep_scale_ : 1.0f;
    std::int32_t* const offset = list_offset_.data();
    float* const value = list_value_.data();
    int count = 0;
    for (int y = 0; y < height; ++y) {
        float const* const gradient = from + y * g.row_step;
        for (int x = 0; x < width; ++x, ++code) {
            offset[count] = (2 * y + (*code >> 1)) * row + 2 * x + (*code & 1);
            value[count] = scale * gradient[x * g.pixel_step];
            count += *code != no_winner;
        }
    }
    return {offset, value, count};
}

void convolution_layer::pack_weights() {
    int const inputs = options_.in_channels;
    for (int o = 0; o < options_.out_channels; ++o) {
        for (int i = 0; i < inputs; ++i) {
            for (int tap = 0; tap < convolution_taps; ++tap)
                flipped_[(o * convolution_taps + tap) * padded_channels + i] =
                    weights_[(o * inputs + i) * convolution_taps + tap];
        }
    }
}

void convolution_layer::backward(int images, float const* in, float const*, float const* out_gradient, float* in_gradient) {
    auto const in_shape = in_format(), gradient_shape = in_gradient_format();
    int const outputs = options_.out_channels, sums_step = options_.in_channels * convolution_window * padded_row;
    std::fill(sums_.begin(), sums_.end(), 0.0f);
    std::fill(bias_gradient_.begin(), bias_gradient_.end(), 0.0f);
    if (in_gradient) pack_weights();
    for (int n = 0; n < images; ++n) {
        float* const back = in_gradient ? in_gradient + n * gradient_shape.image_step : nullptr;
        if (back) std::fill_n(back, gradient_shape.image_step, 0.0f);
        for (int o = 0; o < outputs; ++o) {
            if (options_.dropout > 0 && !kept(n, o)) continue;
            auto const list = winners_of(n, o, out_gradient);
            bias_gradient_[o] = std::accumulate(list.value, list.value + list.count, bias_gradient_[o]);
            kernels_->convolution_weight_gradient(shape_, in + n * in_shape.image_step, list, sums_.data() + o * sums_step);
            if (back)
                kernels_->convolution_input_gradient(shape_, flipped_.data() + o * convolution_taps * padded_channels, list,
                                                     back);
        }
    }
    auto const rows = weight_gradient_.size() / convolution_window;
    for (std::size_t r = 0; r < rows; ++r)
        std::copy_n(sums_.data() + r * padded_row, convolution_window, weight_gradient_.data() + r * convolution_window);
}

layer::work convolution_layer::dense_work(bool input_gradient) const {
    double const pass = 2.0 * options_.size * options_.size * options_.out_channels * options_.in_channels * convolution_taps;
    return {pass, input_gradient ? 2 * pass : pass};
}

}  // namespace muster
