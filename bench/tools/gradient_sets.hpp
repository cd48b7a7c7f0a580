// The sizes of the gradient tensors of known networks, in the order of their layers.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace muster {

struct gradient_set {
    std::string_view name;
    std::string_view source;            ///< the source of the sizes
    std::vector<std::size_t> elements;  ///< of each tensor
    /// The part of the backward pass between the gradient of each tensor and the one before it (the last tensor's comes first):
    /// multiplications with its elements for one sample, up to a common factor. Empty: not known.
    std::vector<double> work = {};
    std::size_t parameters() const noexcept;
};

/// Returns "resnet50", "cifar" (ResNet-20), "cifar10" (the published table's, 23 M), "mnist" or "gpt2", also "gpt2-small" (124 M), built from the architecture's numbers.
/// Throws errc::usage for another name.
gradient_set gradients_of(std::string_view name);

}  // namespace muster
