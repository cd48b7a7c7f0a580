#include "bench/network/parameter_table.hpp"

#include <cmath>
#include <numeric>

namespace muster {

std::size_t parameter_shape::count() const noexcept {
    return std::accumulate(dimensions.begin(), dimensions.end(), std::size_t{1},
                           [](std::size_t product, int d) { return product * static_cast<std::size_t>(d); });
}

parameter_table::parameter_table(std::span<std::unique_ptr<layer> const> layers, std::size_t aligned_to)
    : of_layer_(layers.size()) {
    // The last layer's gradients are ready first.
    for (std::size_t i = layers.size(); i-- > 0;) {
        of_layer_[i].first = rows_.size();
        total_ = (total_ + aligned_to - 1) / aligned_to * aligned_to;
        for (auto& shape : layers[i]->parameters()) {
            auto const count = shape.count();
            rows_.push_back({std::move(shape), total_});
            total_ += count;
        }
        of_layer_[i].count = rows_.size() - of_layer_[i].first;
    }
}

std::size_t parameter_table::parameters() const noexcept {
    return std::accumulate(rows_.begin(), rows_.end(), std::size_t{0},
                           [](std::size_t sum, parameter_place const& row) { return sum + row.shape.count(); });
}

void parameter_table::bind(std::span<std::unique_ptr<layer> const> layers, std::span<float const> parameters,
                           std::span<float> gradients) const {
    for (std::size_t i = 0; i < layers.size(); ++i) {
        auto const& of = of_layer_[i];
        if (of.count == 0) continue;
        std::size_t count = 0;
        for (std::size_t t = of.first; t < of.first + of.count; ++t) count += rows_[t].shape.count();
        auto const first = rows_[of.first].first;
        layers[i]->bind(parameters.subspan(first, count), gradients.subspan(first, count));
    }
}

void parameter_table::initialise(std::uint64_t seed, std::span<float> parameters) const {
    random_stream const stream(seed, 1);
    std::uint64_t draw = 0;
    for (auto const& of : of_layer_) {
        for (std::size_t i = of.first; i < of.first + of.count; ++i) {
            float const bound = 1.0f / std::sqrt(static_cast<float>(rows_[i].shape.fan_in));
            for (float& p : parameters.subspan(rows_[i].first, rows_[i].shape.count()))
                p = bound * (2.0f * stream.uniform(draw++) - 1.0f);
        }
    }
}

}  // namespace muster
