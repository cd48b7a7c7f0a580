// Helpers of tests on a real GPU.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/cuda/handles.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster::test {

/// The GPU that the main chose.
std::shared_ptr<cuda::device const> const& gpu();

/// Bytes in the GPU's memory; what is copied has arrived when the call returns.
class gpu_bytes {
  public:
    explicit gpu_bytes(std::size_t count) : count_(count), memory_(cuda::make_memory(*gpu(), count + 1)) {}
    void upload(std::span<std::byte const> from, cuda::stream_handle on = nullptr);
    std::vector<std::byte> download(cuda::stream_handle on = nullptr) const;
    cuda::device_address address() const noexcept { return memory_.get().handle; }

  private:
    std::size_t count_;
    cuda::unique_memory memory_;
};

/// What a tensor in the GPU's memory holds once the stream has come so far.
template <typename T>
std::vector<T> download(tensor_view const& from, cuda::stream_handle on = nullptr) {
    std::vector<T> result(from.count);
    cuda::driver const& with = gpu()->with();
    cuda::device::scope const current(*gpu());
    if (from.count != 0)
        cuda::check(with,
                    with.copy_device_to_host(result.data(), std::bit_cast<cuda::device_address>(from.data), from.bytes(), on),
                    "cuMemcpyDtoHAsync");
    cuda::check(with, with.stream_synchronize(on), "cuStreamSynchronize");
    return result;
}

/// Elements in the GPU's memory.
template <typename T>
class gpu_vector {
  public:
    explicit gpu_vector(std::vector<T> const& values) : count_(values.size()), bytes_(count_ * sizeof(T)) {
        bytes_.upload(std::as_bytes(std::span(values)));
    }
    tensor_view view() const { return {std::bit_cast<void*>(bytes_.address()), count_, dtype_of<T>(), memory_kind::device}; }
    std::vector<T> values(cuda::stream_handle on = nullptr) const { return download<T>(view(), on); }

  private:
    std::size_t count_;
    gpu_bytes bytes_;
};

}  // namespace muster::test
