// Data-parallel training of a network, timed.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "bench/network/kernel_table.hpp"
#include "bench/training/train_record.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// How a GPU's step goes.
enum class graph_use {
    step,   ///< the whole step as one graph, with NCCL's allreduces in it
    parts,  ///< graphs between the allreduces of the communicator for device memory
    off,    ///< call by call, with the same allreduces as `parts`
};

struct gpu_training_options {
    graph_use graph = graph_use::step;
    int device = -1;      ///< as comm_options::device
    std::string backend;  ///< of the communicator for device memory; "": chosen. Not with graph_use::step, which is NCCL's
};

struct training_options {
    std::string net = "mnist";  ///< of choose_network.hpp
    std::string
        data;  ///< a dataset file or a folder of CIFAR-10's binary files, with the splits "train" and "test"; "": generated images
    std::size_t generated_train = 0,
                generated_test = 0;  ///< images, where they are generated; 0: as many as the network's data set has
    int epochs = 1;
    int batch = 64;             ///< images a rank and step
    bool global_batch = false;  ///< `batch` is that of all ranks, who share it evenly, and the rate is not multiplied
    std::uint64_t seed = 42;
    double rate = 0.01;  ///< for one rank: multiplied by the number of ranks
    double momentum = 0.5;
    double dropout = 0.5;  ///< probability, of both dropouts
    std::size_t bucket_bytes = 64 << 10;
    bool published_protocol = false;  ///< ranks average and wait for the loss in every step, as the published runs did
    double target_accuracy = 0;       ///< from 0 to 1: training ends once the test reaches it; 0: none
    bool on_gpu = false;              ///< the rank's GPU trains, and reduces the gradients in its memory
    gpu_training_options gpu{};       ///< of that
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
