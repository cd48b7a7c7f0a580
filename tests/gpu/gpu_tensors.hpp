// Tensors in a GPU's memory for the GPU benchmarks: fills them with known numbers and checks them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "comm/cuda/handles.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

/// Tensors of the given sizes and one type. Owns their memory; the device outlives it. Throws cuda_error.
class gpu_tensors {
  public:
    enum class layout {
        apart,  ///< each aligned to 512 bytes, as frameworks' allocators give them
        fused,  ///< in one buffer, by cuda::fused_offsets
    };
    gpu_tensors(cuda::device const& on, std::span<std::size_t const> counts, dtype type, layout how);

    std::span<tensor_view const> views() const noexcept { return views_; }
    dtype type() const noexcept { return type_; }
    cuda::device_address address() const noexcept { return memory_.get().handle; }
    std::size_t bytes() const noexcept { return bytes_; }  ///< of the whole memory, gaps included

    /// Element k of tensor i becomes (31 i + k) % 251 - 125, exact in every type; waits for the device.
    void fill(void* stream);

    /// Makes every byte 0xff, so that what is not written to later shows.
    void clear(void* stream) const;

    /// "" if element k of tensor i is what fill() gave times `factor`, else the first that is not. Waits for the device.
    std::string fault(void* stream, double factor) const;

  private:
    cuda::device const& on_;
    dtype type_;
    std::size_t bytes_ = 0;
    cuda::unique_memory memory_;
    std::vector<tensor_view> views_;
};

}  // namespace muster
