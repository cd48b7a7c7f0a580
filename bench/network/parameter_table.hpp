// The table of a network's parameters: says where each tensor lies in one array, binds the layers to it and draws the first values.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bench/network/layer.hpp"

namespace muster {

/// One parameter tensor and where it begins in the array.
struct parameter_place {
    parameter_shape shape;
    std::size_t first;
};

/// All parameters lie in one array and all gradients in another of the same order, on whatever device the layers are: the layer
/// whose gradient is ready first at the front, so that a reducer sends contiguous pieces.
class parameter_table {
  public:
    /// Each layer's tensors begin at a multiple of `aligned_to` floats.
    explicit parameter_table(std::span<std::unique_ptr<layer> const> layers, std::size_t aligned_to = 1);

    std::span<parameter_place const> rows() const noexcept { return rows_; }
    std::size_t total() const noexcept { return total_; }  ///< floats, with what lies between the layers
    std::size_t parameters() const noexcept;               ///< without

    /// The rows of a layer's tensors.
    struct range {
        std::size_t first = 0, count = 0;
    };
    range const& of_layer(std::size_t index) const { return of_layer_.at(index); }

    /// Tells the layers where their parameters and gradients live: total() floats each.
    void bind(std::span<std::unique_ptr<layer> const> layers, std::span<float const> parameters,
              std::span<float> gradients) const;

    /// PyTorch's default: weights and biases uniform in +-1/sqrt(fan_in), here drawn from random_stream{seed, 1}, numbered from
    /// the first layer's weights on.
    void initialise(std::uint64_t seed, std::span<float> parameters) const;

  private:
    std::vector<parameter_place> rows_;
    std::vector<range> of_layer_;
    std::size_t total_ = 0;
};

}  // namespace muster
