#include "io/loader/image_transform.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/throw_error.hpp"
#include "io/loader/windowed_order.hpp"

#if defined(__x86_64__)
#define MUSTER_AVX2 [[gnu::target("avx2")]]
#endif

namespace muster {

namespace {

// Inlined into one function for each level, whose target decides how it is vectorised. AVX2 without FMA: a sum that is rounded
// once would differ from that of other machines.
[[gnu::always_inline]] inline void row_body(std::uint8_t const* from, float* into, std::size_t count, float scale, float shift,
                                            bool mirrored) noexcept {
    if (mirrored)
        for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<float>(from[count - 1 - i]) * scale + shift;
    else
        for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<float>(from[i]) * scale + shift;
}

using row_kernel = void (*)(std::uint8_t const*, float*, std::size_t, float, float, bool) noexcept;

[[gnu::optimize("fp-contract=off")]] void row_plain(std::uint8_t const* from, float* into, std::size_t count, float scale,
                                                    float shift, bool mirrored) noexcept {
    row_body(from, into, count, scale, shift, mirrored);
}

#if defined(__x86_64__)
MUSTER_AVX2 void row_avx2(std::uint8_t const* from, float* into, std::size_t count, float scale, float shift,
                          bool mirrored) noexcept {
    row_body(from, into, count, scale, shift, mirrored);
}
#endif

row_kernel kernel_of([[maybe_unused]] simd level) noexcept {
#if defined(__x86_64__)
    if (level != simd::baseline) return row_avx2;
#endif
    return row_plain;
}

std::vector<double> one_a_channel(std::vector<float> const& given, std::size_t channels, double otherwise,
                                  std::string_view what) {
    if (given.empty()) return std::vector<double>(channels, otherwise);
    if (given.size() != channels)
        throw_error(errc::usage, "transform: {} {} for images of {} channels; give one a channel", given.size(), what, channels);
    return {given.begin(), given.end()};
}

std::size_t crop_of(std::size_t wanted, std::size_t size, std::size_t pad, std::string_view what) {
    if (wanted > size + 2 * pad)
        throw_error(errc::usage, "transform: a crop of {} {} from images of {} with {} of padding; give at most {}", wanted, what,
                    size, pad, size + 2 * pad);
    return wanted == 0 ? size + 2 * pad : wanted;
}

}  // namespace

image_transform::image_transform(image_shape const& shape, transform_options options, std::uint64_t seed)
    : in_(shape), options_(std::move(options)), seed_(seed) {
    if (options_.pad > std::size_t{1} << 20) throw_error(errc::usage, "transform: padding of {}; give less", options_.pad);
    auto const mean = one_a_channel(options_.mean, shape.channels, 0, "means");
    auto const deviation = one_a_channel(options_.deviation, shape.channels, 1, "deviations");
    for (std::size_t c = 0; c < shape.channels; ++c) {
        if (!(deviation[c] > 0))
            throw_error(errc::usage, "transform: the deviation of channel {} is {}; give a positive one", c, deviation[c]);
        scale_.push_back(static_cast<float>(1 / (255 * deviation[c])));
        shift_.push_back(static_cast<float>(-mean[c] / deviation[c]));
    }
    out_ = {shape.channels, crop_of(options_.crop_height, shape.height, options_.pad, "rows"),
            crop_of(options_.crop_width, shape.width, options_.pad, "columns")};
}

void image_transform::apply(std::uint64_t epoch, std::uint64_t sample, std::uint8_t const* image, float* into,
                            simd level) const noexcept {
    std::uint64_t const key = permutation::mix(permutation::mix(permutation::mix(seed_) + epoch) + sample + 1);
    std::size_t const rows = in_.height + 2 * options_.pad - out_.height, columns = in_.width + 2 * options_.pad - out_.width;
    std::uint64_t const chance = permutation::mix(key);
    std::size_t const top = options_.random ? chance % (rows + 1) : rows / 2;
    std::size_t const left = options_.random ? permutation::mix(chance) % (columns + 1) : columns / 2;
    bool const mirrored = options_.flip && (key & 1) != 0;
    row_kernel const row = kernel_of(level);
    // The columns of the crop that lie within the image: `inner` of them from `begin` on in the image, after `before` of padding.
    std::size_t const begin = left > options_.pad ? left - options_.pad : 0;
    std::size_t const end = std::min(in_.width, left + out_.width > options_.pad ? left + out_.width - options_.pad : 0);
    std::size_t const inner = end > begin ? end - begin : 0;
    std::size_t const before = std::min(out_.width, options_.pad > left ? options_.pad - left : 0);
    std::size_t const first = mirrored ? out_.width - before - inner : before;
    for (std::size_t c = 0; c < out_.channels; ++c)
        for (std::size_t y = 0; y < out_.height; ++y, into += out_.width) {
            std::size_t const line = top + y;
            if (line < options_.pad || line >= options_.pad + in_.height || inner == 0) {
                std::fill_n(into, out_.width, shift_[c]);
                continue;
            }
            std::fill_n(into, first, shift_[c]);
            row(image + (c * in_.height + line - options_.pad) * in_.width + begin, into + first, inner, scale_[c], shift_[c],
                mirrored);
            std::fill_n(into + first + inner, out_.width - first - inner, shift_[c]);
        }
}

}  // namespace muster
