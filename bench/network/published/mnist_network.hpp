// The network of the published MNIST scaling table: 21,840 parameters.
#pragma once

#include "bench/network/network.hpp"

namespace muster {

/// conv 1->10 5x5, max-pool 2, ReLU, conv 10->20 5x5, channel dropout 0.5, max-pool 2, ReLU, fc 320-50, ReLU, dropout 0.5, fc
/// 50-10, log_softmax and negative log-likelihood, on 28x28 bytes normalised by (0.1307, 0.3081). Source: the MNIST example that
/// the table was measured with.
class mnist_network : public network {
  public:
    static constexpr image_input images{1, 28, 28, 0.1307f, 0.3081f, 10};

    /// `dropout` is the probability of both dropouts; 0 leaves them out.
    mnist_network(int max_batch, kernel_table const& kernels, float dropout = 0.5f);
};

}  // namespace muster
