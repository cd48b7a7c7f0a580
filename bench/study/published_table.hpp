// The published table of 1 to 32 GPUs from which this benchmark takes its protocol.
#pragma once

#include <array>

namespace muster {

/// Seconds for 32 epochs of training and testing with PyTorch and Horovod on DGX A100 nodes, 8 GPUs each, batch 64 a GPU; one run
/// a point. Source: argonne-lcf/sdl_ai_workshop, 01_distributedDeepLearning/Horovod (December 2020), quoted in
/// argonne-lcf/CompPerfWorkshop-2021.
struct published_row {
    int gpus;
    double cifar_s, cifar_speedup, mnist_s, mnist_speedup;
    int cifar_step_ms, mnist_step_ms;
};

inline constexpr std::array<published_row, 6> published_rows{{{1, 522.3, 1.00, 499.8, 1.00, 17, 14},
                                                              {2, 318.8, 1.64, 283.9, 1.76, 21, 16},
                                                              {4, 121.4, 4.30, 100.4, 4.98, 16, 11},
                                                              {8, 73.5, 7.11, 58.8, 8.50, 19, 13},
                                                              {16, 79.1, 6.60, 63.8, 7.83, 42, 29},
                                                              {32, 81.1, 6.44, 55.7, 8.97, 84, 50}}};

}  // namespace muster
