#include "bench/network/loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace muster {

loss_result softmax_loss(std::span<float const> outputs, int stride, int classes, std::span<std::uint8_t const> labels,
                         std::span<float> gradient, float share) {
    loss_result result;
    for (std::size_t n = 0; n < labels.size(); ++n) {
        if (labels[n] >= classes)
            throw error(errc::invalid_data,
                        fmt::format("label {} of image {} of this batch is none of the {} classes 0 to {}; give a "
                                    "dataset of so many classes",
                                    labels[n], n, classes, classes - 1));
        auto const row = outputs.subspan(n * static_cast<std::size_t>(stride), static_cast<std::size_t>(classes));
        auto const largest = std::max_element(row.begin(), row.end());
        float total = 0;
        for (float x : row) total += std::exp(x - *largest);
        result.loss_sum += std::log(total) + *largest - row[labels[n]];
        result.correct += largest - row.begin() == labels[n];
        if (gradient.empty()) continue;
        auto const to = gradient.subspan(n * static_cast<std::size_t>(stride), static_cast<std::size_t>(classes));
        for (std::size_t k = 0; k < to.size(); ++k) {
            float const probability = std::exp(row[k] - *largest) / total;
            to[k] = (probability - (k == labels[n] ? 1.0f : 0.0f)) * share;
        }
    }
    return result;
}

}  // namespace muster
