// A pinned buffer: host memory that a GPU copies from and to by itself, without the processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/cuda/handles.hpp"

namespace muster::cuda {

/// Move-only. Its GPU stays open as long as it.
class pinned_buffer {
  public:
    pinned_buffer() = default;

    /// `bytes` of memory, aligned to a page, for the GPU that choose_device() gives. Throws errc::unavailable where `found` has no
    /// GPU, errc::placement, cuda_error.
    static pinned_buffer allocate(found_driver const& found, std::size_t bytes, int local_rank);

    std::span<std::uint8_t> bytes() const noexcept { return bytes_; }

  private:
    std::shared_ptr<device const> on_;  // before what is on it
    unique_pinned memory_;
    std::span<std::uint8_t> bytes_;
};

/// Whether the calling thread has a context on a GPU, as it has once its framework has used one. Loads and starts nothing.
bool uses_gpu() noexcept;

}  // namespace muster::cuda
