// The preparation of images for training: turns bytes into numbers, normalised, cropped and flipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/tensor/simd.hpp"
#include "io/dataset/image_shape.hpp"

namespace muster {

/// Holds what is done to an image: value = (byte / 255 - mean) / deviation of its channel, of a part of crop_height x crop_width.
struct transform_options {
    std::vector<float> mean;       ///< one a channel; empty: 0
    std::vector<float> deviation;  ///< one a channel; empty: 1
    std::size_t crop_height = 0;   ///< rows; 0: all
    std::size_t crop_width = 0;
    std::size_t pad =
        0;  ///< rows and columns of value (0 - mean) / deviation that the image is given on each side before the crop
    bool random = false;  ///< the crop lies anywhere, each place as likely; else in the middle (rounded down)
    bool flip = false;    ///< every second image, by chance, is mirrored left to right
    bool operator==(transform_options const&) const = default;
};

/// Chance is a function of (seed, epoch, sample) alone: the key of an image is mix(mix(mix(seed) + epoch) + sample + 1), bit 0 says
/// whether it is mirrored, mix(key) and mix(mix(key)) modulo the number of places where the crop's first row and column are. Values
/// are the same on every machine: one multiplication and one addition in f32, factor and summand rounded from f64. Thread safe.
class image_transform {
  public:
    /// Throws errc::usage where numbers do not fit the shape.
    image_transform(image_shape const& shape, transform_options options, std::uint64_t seed);

    image_shape out() const noexcept { return out_; }  ///< shape of the result; in f32
    std::size_t values() const noexcept { return out_.elements(); }

    /// `image` has shape.elements() bytes, `into` values() numbers.
    void apply(std::uint64_t epoch, std::uint64_t sample, std::uint8_t const* image, float* into,
               simd level = best_simd()) const noexcept;

  private:
    image_shape in_;
    image_shape out_;
    transform_options options_;
    std::uint64_t seed_;
    std::vector<float> scale_;  ///< one a channel
    std::vector<float> shift_;
};

}  // namespace muster
