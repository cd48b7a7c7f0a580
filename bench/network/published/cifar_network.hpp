// The network of the published CIFAR-10 scaling table: AlexNet-like, 23,272,266 parameters.
#pragma once

#include "bench/network/network.hpp"

namespace muster {

/// conv 3->64 3x3 stride 2, ReLU, max-pool 2, conv 64->192, ReLU, max-pool 2, conv 192->384, ReLU, conv 384->256, ReLU, conv
/// 256->256, ReLU, max-pool 2, dropout 0.5, fc 1024-4096, ReLU, dropout 0.5, fc 4096-4096, ReLU, fc 4096-10, cross entropy; all
/// convolutions 3x3 with a padding of 1. On 3x32x32 bytes normalised by (0.5, 0.5). Source: the CIFAR-10 example that the table
/// was most likely measured with; its channels, sizes and number of parameters are those.
class cifar_network : public network {
  public:
    static constexpr image_input images{3, 32, 32, 0.5f, 0.5f, 10};

    /// `dropout` is the probability of both dropouts; 0 leaves them out.
    cifar_network(int max_batch, kernel_table const& kernels, float dropout = 0.5f);
};

}  // namespace muster
