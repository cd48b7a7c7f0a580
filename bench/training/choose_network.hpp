// The networks of the training benchmark by name.
#pragma once

#include <cstddef>
#include <string_view>

#include "bench/network/network.hpp"

namespace muster {

/// What the published runs trained a network on.
struct network_facts {
    std::string_view name;
    image_input input;
    std::size_t train_images = 0, test_images = 0;  ///< of its data set
};

/// "mnist" or "cifar10". Throws errc::usage, naming them, for another.
network_facts const& facts_of_network(std::string_view name);

/// Bytes of a gradient bucket where a training is not given any: 64 KiB for "mnist", else 1 MiB. Any name.
std::size_t default_bucket_bytes(std::string_view name) noexcept;

/// `dropout` is the probability of all its dropouts.
network make_network(std::string_view name, int max_batch, kernel_table const& kernels, float dropout);

}  // namespace muster
