#include "bench/network/window_layer.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace muster {

window_layer::window_layer(options const& what, kernel_table const& kernels)
    : options_(what), kernels_(&kernels), scratch_(gemm_scratch_floats) {
    expect(what.size % what.stride == 0, "the size of a convolution is a multiple of its stride");
    for (int tap = 0; tap < taps; ++tap) pixels_.push_back(pixels_of(tap));
    auto const weights = static_cast<std::size_t>(taps * what.in_channels * what.out_channels);
    tap_weights_.resize(weights);
    tap_gradients_.resize(weights);
    masked_.resize(static_cast<std::size_t>(what.max_batch * out_format().image_step));
    auto const pixels = static_cast<std::size_t>(what.max_batch * out_format().height * out_format().width);
    if (gathers()) gathered_.resize(pixels * static_cast<std::size_t>(taps * what.in_channels));
}

window_layer::tap_pixels window_layer::pixels_of(int tap) const {
    tap_pixels found;
    int const out_size = options_.size / options_.stride;
    for (int y = 0; y < out_size; ++y) {
        for (int x = 0; x < out_size; ++x) {
            int const from_y = y * options_.stride + tap / 3 - 1, from_x = x * options_.stride + tap % 3 - 1;
            if (from_y < 0 || from_x < 0 || from_y >= options_.size || from_x >= options_.size) continue;
            found.in.push_back((from_y * options_.size + from_x) * options_.in_channels);
            found.out.push_back((y * out_size + x) * options_.out_channels);
        }
    }
    return found;
}

std::vector<parameter_shape> window_layer::parameters() const {
    int const fan_in = options_.in_channels * taps;
    return {{options_.name + ".weight", {options_.out_channels, options_.in_channels, 3, 3}, fan_in},
            {options_.name + ".bias", {options_.out_channels}, fan_in}};
}

void window_layer::bind(std::span<float const> parameters, std::span<float> gradients) {
    expect(parameters.size() == tap_weights_.size() + static_cast<std::size_t>(options_.out_channels) &&
               gradients.size() == parameters.size(),
           "bound memory fits the layer");
    weights_ = parameters.first(tap_weights_.size());
    bias_ = parameters.subspan(tap_weights_.size());
    weight_gradient_ = gradients.first(tap_weights_.size());
    bias_gradient_ = gradients.subspan(tap_weights_.size());
}

// [out][in][tap] becomes [tap][in][out], a few outputs at a time so that both sides stay in the cache.
void window_layer::pack_weights() {
    int const in = options_.in_channels, out = options_.out_channels;
    constexpr int few = 16;
    for (int first = 0; first < out; first += few) {
        for (int i = 0; i < in; ++i) {
            for (int o = first; o < std::min(out, first + few); ++o) {
                float const* const from = weights_.data() + (static_cast<std::size_t>(o) * in + i) * taps;
                for (int tap = 0; tap < taps; ++tap) tap_row(tap_weights_, tap, i)[o] = from[tap];
            }
        }
    }
}

// What is outside of the image is 0 from the beginning and never written.
void window_layer::gather(int images, float const* in) {
    auto const from = in_format(), to = out_format();
    int const row = taps * from.channels;
    for (int tap = 0; tap < taps; ++tap) {
        auto const& pixels = pixels_[static_cast<std::size_t>(tap)];
        for (int n = 0; n < images; ++n) {
            float* const image =
                gathered_.data() + static_cast<std::ptrdiff_t>(n) * to.height * to.width * row + tap * from.channels;
            for (std::size_t i = 0; i < pixels.in.size(); ++i)
                std::copy_n(in + n * from.image_step + pixels.in[i], from.channels, image + pixels.out[i] / to.channels * row);
        }
    }
}

void window_layer::gathered_forward(int images, float const* in, float* out) {
    gather(images, in);
    int const row = taps * options_.in_channels, pixels = images * out_format().height * out_format().width;
    in_rows_.clear(), out_rows_.clear(), weight_rows_.clear();
    for (std::ptrdiff_t i = 0; i < pixels; ++i) {
        in_rows_.push_back(gathered_.data() + i * row);
        out_rows_.push_back(out + i * options_.out_channels);
    }
    for (int i = 0; i < row; ++i) weight_rows_.push_back(tap_row(tap_weights_, 0, i));
    kernels_->gemm({pixels, options_.out_channels, row}, {in_rows_.data(), true}, {weight_rows_.data(), false}, out_rows_.data(),
                   true, scratch_.data());
}

void window_layer::gathered_weight_gradients(int images) {
    int const row = taps * options_.in_channels, pixels = images * out_format().height * out_format().width;
    in_rows_.clear(), out_rows_.clear(), weight_rows_.clear();
    for (std::ptrdiff_t i = 0; i < pixels; ++i) {
        in_rows_.push_back(gathered_.data() + i * row);
        weight_rows_.push_back(masked_.data() + i * options_.out_channels);
    }
    for (int i = 0; i < row; ++i) out_rows_.push_back(tap_row(tap_gradients_, 0, i));
    kernels_->gemm({row, options_.out_channels, pixels}, {in_rows_.data(), false}, {weight_rows_.data(), false}, out_rows_.data(),
                   false, scratch_.data());
}

void window_layer::forward(int images, float const* in, float* out, bool) {
    pack_weights();
    auto const from = in_format(), to = out_format();
    int const pixels = images * to.height * to.width;
    for (int i = 0; i < pixels; ++i) std::copy(bias_.begin(), bias_.end(), out + static_cast<std::ptrdiff_t>(i) * to.channels);
    if (gathers()) gathered_forward(images, in, out);
    for (int tap = 0; tap < taps && !gathers(); ++tap) {
        in_rows_.clear(), out_rows_.clear(), weight_rows_.clear();
        for (int n = 0; n < images; ++n) {
            for (auto const place : pixels_[tap].in) in_rows_.push_back(in + n * from.image_step + place);
            for (auto const place : pixels_[tap].out) out_rows_.push_back(out + n * to.image_step + place);
        }
        for (int i = 0; i < from.channels; ++i) weight_rows_.push_back(tap_row(tap_weights_, tap, i));
        kernels_->gemm({static_cast<int>(in_rows_.size()), to.channels, from.channels}, {in_rows_.data(), true},
                       {weight_rows_.data(), false}, out_rows_.data(), true, scratch_.data());
    }
    auto const count = static_cast<std::ptrdiff_t>(images) * to.image_step;
    for (std::ptrdiff_t i = 0; i < count && options_.relu; ++i) out[i] = out[i] > 0 ? out[i] : 0.0f;
}

void window_layer::mask(int images, float const* out, float const* out_gradient) {
    auto const count = static_cast<std::ptrdiff_t>(images) * out_format().image_step;
    for (std::ptrdiff_t i = 0; i < count; ++i) masked_[i] = out[i] > 0 || !options_.relu ? out_gradient[i] : 0.0f;
}

void window_layer::weight_gradients(int images, float const* in) {
    auto const from = in_format(), to = out_format();
    if (gathers()) gathered_weight_gradients(images);
    for (int tap = 0; tap < taps && !gathers(); ++tap) {
        in_rows_.clear(), out_rows_.clear(), weight_rows_.clear();
        for (int n = 0; n < images; ++n) {
            for (auto const place : pixels_[tap].in) in_rows_.push_back(in + n * from.image_step + place);
            for (auto const place : pixels_[tap].out) weight_rows_.push_back(masked_.data() + n * to.image_step + place);
        }
        for (int i = 0; i < from.channels; ++i) out_rows_.push_back(tap_row(tap_gradients_, tap, i));
        kernels_->gemm({from.channels, to.channels, static_cast<int>(in_rows_.size())}, {in_rows_.data(), false},
                       {weight_rows_.data(), false}, out_rows_.data(), false, scratch_.data());
    }
    unpack_weight_gradients();
}

void window_layer::unpack_weight_gradients() {
    auto const from = in_format(), to = out_format();
    constexpr int few = 16;
    for (int first = 0; first < to.channels; first += few) {
        for (int i = 0; i < from.channels; ++i) {
            for (int o = first; o < std::min(to.channels, first + few); ++o) {
                float* const at = weight_gradient_.data() + (static_cast<std::size_t>(o) * from.channels + i) * taps;
                for (int tap = 0; tap < taps; ++tap) at[tap] = tap_row(tap_gradients_, tap, i)[o];
            }
        }
    }
}

void window_layer::input_gradients(int images, float* in_gradient) {
    auto const to = in_format(), from = out_format();
    std::fill_n(in_gradient, static_cast<std::size_t>(images) * to.image_step, 0.0f);
    for (int tap = 0; tap < taps; ++tap) {
        in_rows_.clear(), out_rows_.clear(), weight_rows_.clear();
        for (int n = 0; n < images; ++n) {
            for (auto const place : pixels_[tap].in) out_rows_.push_back(in_gradient + n * to.image_step + place);
            for (auto const place : pixels_[tap].out) in_rows_.push_back(masked_.data() + n * from.image_step + place);
        }
        for (int i = 0; i < to.channels; ++i) weight_rows_.push_back(tap_row(tap_weights_, tap, i));
        kernels_->gemm({static_cast<int>(in_rows_.size()), to.channels, from.channels}, {in_rows_.data(), true},
                       {weight_rows_.data(), true}, out_rows_.data(), true, scratch_.data());
    }
}

void window_layer::backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) {
    mask(images, out, out_gradient);
    std::fill(bias_gradient_.begin(), bias_gradient_.end(), 0.0f);
    auto const pixels = static_cast<std::ptrdiff_t>(images) * out_format().height * out_format().width;
    for (std::ptrdiff_t i = 0; i < pixels; ++i) {
        float const* const pixel = masked_.data() + i * options_.out_channels;
        for (int o = 0; o < options_.out_channels; ++o) bias_gradient_[o] += pixel[o];
    }
    weight_gradients(images, in);
    if (in_gradient != nullptr) input_gradients(images, in_gradient);
}

layer::work window_layer::dense_work(bool input_gradient) const {
    double const pass = 2.0 * taps * options_.in_channels * out_format().elements();
    return {pass, input_gradient ? 2 * pass : pass};
}

}  // namespace muster
