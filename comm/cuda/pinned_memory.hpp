// Pinned host memory. Grows, and is never freed while the device may use it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/cuda/handles.hpp"

namespace muster::cuda {

// A pinned buffer: host memory that a GPU copies from and to by itself, without the processor.

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

namespace muster::nccl {

/// Not thread safe.
class pinned_memory {
  public:
    /// At least so many bytes; what was there before is not kept, though copies to and from it may be under way. Throws
    /// cuda_error.
    std::byte* at_least(cuda::device const& on, std::size_t bytes) {
        if (bytes > bytes_) {
            cuda::unique_pinned larger = cuda::make_pinned(on, std::bit_ceil(bytes));
            smaller_.push_back(std::move(memory_));  // freeing it would wait for the device, and so for other ranks
            memory_ = std::move(larger);
            bytes_ = std::bit_ceil(bytes);
        }
        return data();
    }
    std::byte* data() const noexcept { return static_cast<std::byte*>(memory_.get().handle); }

  private:
    cuda::unique_pinned memory_;
    std::size_t bytes_ = 0;
    std::vector<cuda::unique_pinned> smaller_;
};

}  // namespace muster::nccl
