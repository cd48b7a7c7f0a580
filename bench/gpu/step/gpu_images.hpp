// The images of one split in a GPU's memory: hands out a rank's steps of an epoch as places in an order that lies there too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/gpu/step/gpu_network.hpp"
#include "bench/network/loss.hpp"
#include "io/loader/sampler.hpp"

namespace muster {

/// Every rank has all images. The order is the sampler's, as that of training_split: over all ranks an epoch has every image once.
class gpu_images {
  public:
    /// Memory for `order.size()` images; `batch` is a rank's. Throws cuda_error.
    gpu_images(gpu_compute const& with, image_input const& input, sampler order, int batch, int rank, int world);

    /// Copies images and labels to the place of number `first`. Throws errc::invalid_data on a label that is no class.
    void fill(std::size_t first, std::span<std::uint8_t const> images, std::span<std::uint8_t const> labels);

    std::size_t size() const noexcept { return order_.size(); }
    gpu_source const& source() const noexcept { return source_; }

    /// Copies the order of an epoch; waits for the stream. How many steps the epoch has: the same on all ranks.
    std::size_t begin(std::uint64_t epoch);

    struct part {
        std::size_t first = 0;         ///< place in the order
        int count = 0;                 ///< images; may be 0 at the end where other ranks still have some
        std::size_t global_count = 0;  ///< of all ranks
    };
    part step(std::size_t number) const noexcept;

    /// Of this rank's images `from` … `from + count - 1` of the epoch; waits for the stream.
    loss_result results(std::size_t from, std::size_t count) const;
    loss_result results() const { return results(0, own_); }

  private:
    gpu_compute const& with_;
    image_input input_;
    sampler order_;
    epoch_part part_;
    std::size_t batch_, own_ = 0;
    cuda::unique_memory images_, labels_, places_, losses_, hits_;
    gpu_source source_;
};

}  // namespace muster
