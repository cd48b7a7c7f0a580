#include "bench/network/max_pool_layer.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace muster {

max_pool_layer::max_pool_layer(options const& what) : options_(what), keep_scale_(1.0f / (1.0f - what.dropout)) {
    expect(what.size % 2 == 0, "max-pooling 2x2 takes an even size");
    auto const cells = static_cast<std::size_t>(what.max_batch * outputs());
    winners_.resize(cells);
    if (what.dropout > 0) factor_.assign(cells, keep_scale_);
}

tensor_format max_pool_layer::in_format() const {
    int const c = options_.channels, size = options_.size;
    return {c, size, size, size * size * c, 1, size * c, c};
}

tensor_format max_pool_layer::out_format() const {
    int const c = options_.channels, half = options_.size / 2;
    if (options_.planes) return {c, half, half, outputs(), half * half, half, 1};
    return {c, half, half, outputs(), 1, half * c, c};
}

void max_pool_layer::resample(random_stream const& stream, int images) {
    if (options_.dropout == 0) return;
    auto const count = static_cast<std::size_t>(images * outputs());
    for (std::size_t i = 0; i < count; ++i) factor_[i] = stream.uniform(i) >= options_.dropout ? keep_scale_ : 0.0f;
}

float max_pool_layer::dropout_factor(int image, int unit) const {
    return options_.dropout == 0 ? 1.0f : factor_[static_cast<std::size_t>(image * outputs() + unit)];
}

// All channels of one output pixel; `step`: from one channel to the next in `out`.
void max_pool_layer::forward_pixel(float const* in, float* out, int step, std::uint8_t* winner) const {
    int const right = options_.channels, below = options_.size * options_.channels;
    for (int c = 0; c < options_.channels; ++c) {
        float const a = in[c], b = in[c + right], d = in[c + below], e = in[c + below + right];
        float const top = b > a ? b : a, bottom = e > d ? e : d;
        out[c * step] = bottom > top ? bottom : top;
        winner[c] = static_cast<std::uint8_t>(bottom > top ? 2 + (e > d) : (b > a));
    }
}

void max_pool_layer::forward(int images, float const* in, float* out, bool training) {
    auto const from = in_format(), to = out_format();
    std::uint8_t* winner = winners_.data();
    for (int n = 0; n < images; ++n) {
        for (int y = 0; y < to.height; ++y) {
            for (int x = 0; x < to.width; ++x, winner += options_.channels)
                forward_pixel(in + n * from.image_step + 2 * y * from.row_step + 2 * x * from.pixel_step,
                              out + n * to.image_step + y * to.row_step + x * to.pixel_step, to.channel_step, winner);
        }
    }
    if (!training || options_.dropout == 0) return;
    auto const count = static_cast<std::size_t>(images * outputs());
    for (std::size_t i = 0; i < count; ++i) out[i] *= factor_[i];
}

void max_pool_layer::backward(int images, float const*, float const*, float const* out_gradient, float* in_gradient) {
    if (in_gradient == nullptr) return;
    auto const to = in_format(), from = out_format();
    std::fill_n(in_gradient, static_cast<std::size_t>(images * to.image_step), 0.0f);
    bool const drops = options_.dropout > 0;
    std::uint8_t const* winner = winners_.data();
    for (int n = 0; n < images; ++n) {
        for (int y = 0; y < from.height; ++y) {
            for (int x = 0; x < from.width; ++x, winner += options_.channels) {
                int const place = n * from.image_step + y * from.row_step + x * from.pixel_step;
                float* const at = in_gradient + n * to.image_step + 2 * y * to.row_step + 2 * x * to.pixel_step;
                for (int c = 0; c < options_.channels; ++c) {
                    int const i = place + c * from.channel_step;
                    float const factor = drops ? factor_[static_cast<std::size_t>(i)] : 1.0f;
                    at[(winner[c] >> 1) * to.row_step + (winner[c] & 1) * to.pixel_step + c] = out_gradient[i] * factor;
                }
            }
        }
    }
}

}  // namespace muster
