// A training whose compute is timed and not done: reduces gradients of a known network's sizes, in its order, beside it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "bench/training/train_record.hpp"
#include "comm/communicator.hpp"

namespace muster {

struct timed_options {
    std::string net = "resnet50";  ///< see is_timed_network
    int epochs = 1;
    int steps = 20;          ///< of an epoch
    int batch = 64;          ///< samples a rank and step: for the rate only
    double compute_s = 0.1;  ///< of a step: a third forward, two thirds backward
    bool burn = true;        ///< by processor time of a busy thread; else by sleeping, as for an accelerator that computes
    std::size_t bucket_bytes = std::size_t{1} << 20;
};

inline constexpr char const* timed_note = "timed compute, no training";

/// "resnet50", "gpt2-small".
bool is_timed_network(std::string_view name) noexcept;

/// Collective. Between the gradients of two tensors the backward pass takes its share of the time by the multiplications of the
/// layers; each gradient is handed to the reducer when it is ready, as in a real training. After the first step every tensor is
/// checked to be the average. The record has neither loss, test nor weights. Throws as run_training does.
train_record run_timed_training(timed_options const& options, communicator& ranks, std::chrono::steady_clock::time_point began,
                                std::function<void(epoch_record const&)> const& progress = {});

}  // namespace muster
