// Pinned host memory. Grows, and is never freed while the device may use it.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>
#include <vector>

#include "comm/cuda/handles.hpp"

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
