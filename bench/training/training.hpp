// Data-parallel training of the MNIST network, timed.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "bench/network/kernel_table.hpp"
#include "bench/training/train_record.hpp"
#include "comm/communicator.hpp"

namespace muster {

struct training_options {
    std::string data;  ///< HDF5 file with the splits "train" and "test" of 28x28 images in 10 classes
    int epochs = 1;
    int batch = 64;  ///< images a rank and step
    std::uint64_t seed = 42;
    double rate = 0.01;  ///< for one rank: multiplied by the number of ranks
    double momentum = 0.5;
    double dropout = 0.5;  ///< probability, of both dropouts
    std::size_t bucket_bytes = 64 << 10;
    bool published_protocol = false;  ///< ranks average and wait for the loss in every step, as the published runs did
};

/// Collective over `ranks`. Deterministic: the same data, options, number of ranks and kernels give bitwise the same weights.
/// Every rank gets the same record, but for the profile, which is its own. `began` is when the program started, for the start-up
/// time; `progress`, if given, is called after each epoch. Throws on all ranks: errc::not_found, invalid_data and library for
/// data that cannot be used, errc::invalid_data if the loss or a weight is no number any more, errc::peer_failed naming the ranks
/// whose weights differ.
train_record run_training(training_options const& options, communicator& ranks, kernel_table const& kernels,
                          std::chrono::steady_clock::time_point began,
                          std::function<void(epoch_record const&)> const& progress = {});

}  // namespace muster
