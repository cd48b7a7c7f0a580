#include "bench/network/linear_layer.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr int large_weights = 1 << 20;  // 4 MiB: no second cache holds them

template <class Float>
void set_rows(std::vector<Float*>& rows, Float* first, int count, int stride) {
    rows.clear();
    for (int i = 0; i < count; ++i) rows.push_back(first + static_cast<std::ptrdiff_t>(i) * stride);
}

}  // namespace

linear_layer::linear_layer(options const& what, kernel_table const& kernels)
    : options_(what),
      kernels_(&kernels),
      shape_{what.in, padded(what.in), what.out, padded(what.out)},
      keep_scale_(1.0f / (1.0f - what.dropout)) {
    auto const cells = static_cast<std::size_t>(what.max_batch * shape_.out_stride);
    masked_.assign(cells, 0.0f);
    if (what.dropout > 0) factor_.assign(cells, keep_scale_);
    if (shape_.in != shape_.in_stride) {
        weights_rows_.assign(static_cast<std::size_t>(what.out * shape_.in_stride), 0.0f);
        gradient_rows_.assign(weights_rows_.size(), 0.0f);
    }
    if (what.in * what.out >= large_weights && weights_rows_.empty()) gemm_scratch_.resize(gemm_scratch_floats);
}

std::vector<parameter_shape> linear_layer::parameters() const {
    return {{options_.name + ".weight", {options_.out, options_.in}, options_.in},
            {options_.name + ".bias", {options_.out}, options_.in}};
}

void linear_layer::bind(std::span<float const> parameters, std::span<float> gradients) {
    auto const weights = static_cast<std::size_t>(options_.in * options_.out);
    expect(parameters.size() == weights + static_cast<std::size_t>(options_.out) && gradients.size() == parameters.size(),
           "bound memory fits the layer");
    weights_ = parameters.first(weights);
    bias_ = parameters.subspan(weights);
    weight_gradient_ = gradients.first(weights);
    bias_gradient_ = gradients.subspan(weights);
}

void linear_layer::resample(random_stream const& stream, int images) {
    if (options_.dropout == 0) return;
    std::uint64_t draw = 0;
    for (int n = 0; n < images; ++n) {
        for (int o = 0; o < options_.out; ++o)
            factor_[n * shape_.out_stride + o] = stream.uniform(draw++) >= options_.dropout ? keep_scale_ : 0.0f;
    }
}

float linear_layer::dropout_factor(int image, int unit) const {
    return options_.dropout == 0 ? 1.0f : factor_[image * shape_.out_stride + unit];
}

float const* linear_layer::packed_weights() {
    if (weights_rows_.empty()) return weights_.data();
    for (int o = 0; o < shape_.out; ++o)
        std::copy_n(weights_.data() + o * shape_.in, shape_.in, weights_rows_.data() + o * shape_.in_stride);
    return weights_rows_.data();
}

void linear_layer::forward(int images, float const* in, float* out, bool training) {
    if (is_large())
        large_forward(images, in, out);
    else
        kernels_->linear_forward(shape_, images, in, packed_weights(), bias_.data(), out);
    bool const drops = training && options_.dropout > 0;
    for (int n = 0; n < images && (options_.relu || drops); ++n) {
        float* const row = out + n * shape_.out_stride;
        if (options_.relu) {
            for (int o = 0; o < shape_.out; ++o) row[o] = row[o] > 0 ? row[o] : 0.0f;
        }
        if (drops) {
            float const* const factor = factor_.data() + n * shape_.out_stride;
            for (int o = 0; o < shape_.out; ++o) row[o] *= factor[o];
        }
    }
}

void linear_layer::large_forward(int images, float const* in, float* out) {
    set_rows(in_rows_, in, images, shape_.in_stride);
    set_rows(weight_rows_, weights_.data(), shape_.out, shape_.in_stride);
    set_rows(to_rows_, out, images, shape_.out_stride);
    for (float* row : to_rows_) std::copy(bias_.begin(), bias_.end(), row);
    multiply({images, shape_.out, shape_.in}, {in_rows_.data(), true}, {weight_rows_.data(), true}, to_rows_.data(), true);
}

void linear_layer::large_backward(int images, float const* in, float* in_gradient) {
    set_rows(in_rows_, in, images, shape_.in_stride);
    set_rows(masked_rows_, static_cast<float const*>(masked_.data()), images, shape_.out_stride);
    set_rows(to_rows_, weight_gradient_.data(), shape_.out, shape_.in_stride);
    multiply({shape_.out, shape_.in, images}, {masked_rows_.data(), false}, {in_rows_.data(), false}, to_rows_.data(), false);
    if (in_gradient == nullptr) return;
    set_rows(weight_rows_, weights_.data(), shape_.out, shape_.in_stride);
    set_rows(to_rows_, in_gradient, images, shape_.in_stride);
    multiply({images, shape_.in, shape_.out}, {masked_rows_.data(), true}, {weight_rows_.data(), false}, to_rows_.data(), false);
}

void linear_layer::backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) {
    int const stride = shape_.out_stride;
    std::fill(bias_gradient_.begin(), bias_gradient_.end(), 0.0f);
    for (int n = 0; n < images; ++n) {
        float* const to = masked_.data() + n * stride;
        std::copy_n(out_gradient + n * stride, shape_.out, to);
        if (options_.dropout > 0) {
            for (int o = 0; o < shape_.out; ++o) to[o] *= factor_[n * stride + o];
        }
        if (options_.relu) {  // a dropped output is 0 too, and its factor has already stopped the gradient
            for (int o = 0; o < shape_.out; ++o) to[o] = out[n * stride + o] > 0 ? to[o] : 0.0f;
        }
        for (int o = 0; o < shape_.out; ++o) bias_gradient_[o] += to[o];
    }
    if (is_large()) return large_backward(images, in, in_gradient);
    bool const direct = gradient_rows_.empty();
    float* const rows = direct ? weight_gradient_.data() : gradient_rows_.data();
    kernels_->linear_weight_gradient(shape_, images, in, masked_.data(), rows);
    for (int o = 0; o < shape_.out && !direct; ++o)
        std::copy_n(rows + o * shape_.in_stride, shape_.in, weight_gradient_.data() + o * shape_.in);
    if (in_gradient)
        kernels_->linear_input_gradient(shape_, images, masked_.data(), direct ? weights_.data() : weights_rows_.data(),
                                        in_gradient);
}

layer::work linear_layer::dense_work(bool input_gradient) const {
    double const pass = 2.0 * options_.in * options_.out;
    return {pass, input_gradient ? 2 * pass : pass};
}

}  // namespace muster
