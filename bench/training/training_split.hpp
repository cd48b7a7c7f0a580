// The images of one split for training: hands out the batches of a rank, epoch by epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/network/network.hpp"
#include "io/loader/loader.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// One consumer thread. Over all ranks an epoch has every image once.
class training_split {
  public:
    virtual ~training_split() = default;
    virtual std::size_t size() const noexcept = 0;           ///< images, of all ranks
    virtual std::size_t begin(std::uint64_t epoch) = 0;      ///< how many batches the epoch has; the same on all ranks
    virtual batch const* next() = 0;                         ///< the next batch, good until the next call; nothing at the end
    virtual std::string const& source() const noexcept = 0;  ///< what the images are, for people
};

struct split_request {
    std::string data;   ///< a dataset file, or a folder with the binary files of CIFAR-10; "": generated images
    std::string split;  ///< "train", "test"
    int batch = 64;     ///< images a rank and step
    std::uint64_t seed = 42;
    bool shuffle = true;
    std::size_t generated_images = 0;  ///< of this split, where they are generated
};

/// Opens the split, whole, in memory. Throws errc::not_found, errc::invalid_data if the images are not what the network takes.
std::unique_ptr<training_split> open_training_split(split_request const& request, image_input const& input, identity const& who);

/// Image number `index` of a split of generated images, and its label: a pattern of its class, of low frequencies, under noise that
/// hides it in part, so that a network can learn it and does not at once. The same on every machine. Pure.
std::uint8_t generate_image(std::uint64_t seed, std::uint64_t index, image_input const& input, std::span<std::uint8_t> pixels);

}  // namespace muster
