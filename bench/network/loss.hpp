// The loss: log_softmax followed by the negative log-likelihood.
#pragma once

#include <cstdint>
#include <span>

namespace muster {

struct loss_result {
    double loss_sum = 0;       ///< of the images, not their mean
    std::int64_t correct = 0;  ///< images whose largest output is their label's (the first of equal ones)
};

/// `outputs` holds one row of `stride` floats an image, of which `classes` count; a label an image. With `gradient`, which has
/// the same shape, also writes the gradient of the summed loss times `share`: 1/images for the mean. Throws errc::invalid_data on
/// a label that is no class, naming it.
loss_result softmax_loss(std::span<float const> outputs, int stride, int classes, std::span<std::uint8_t const> labels,
                         std::span<float> gradient = {}, float share = 1);

}  // namespace muster
