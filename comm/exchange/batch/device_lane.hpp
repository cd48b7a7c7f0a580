// A device lane holds what a process set needs on this rank's GPU: communicator, stream, scratch memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/cuda/gpu_access.hpp"
#include "comm/cuda/handles.hpp"

namespace muster::detail {

/// Device memory that grows and is kept. What it was before it grew stays as long: freeing it would wait for the device.
class device_scratch {
  public:
    explicit device_scratch(std::shared_ptr<cuda::device const> on) noexcept : on_(std::move(on)) {}
    std::byte* get(std::size_t bytes);
    /// What get() gives without asking the driver for more; or null.
    std::byte* find(std::size_t bytes) const noexcept;

  private:
    std::shared_ptr<cuda::device const> on_;
    std::vector<cuda::unique_memory> memory_;  // the last is the largest
    std::size_t bytes_ = 0;
};

/// A communicator for device memory, and a stream on which batches are packed, handed to it and unpacked, one after the other: so
/// they share their fusion buffers, and the device need not wait for the host in between. The exchange's thread only.
///
/// Every process set has its own lane: their collectives may come in different orders on different
/// ranks, which NCCL bears as long as the device has room for the kernels of all of them at once.
struct device_lane {
    /// `over`: for device memory of `gpu`. Throws cuda_error.
    device_lane(communicator over, std::shared_ptr<cuda::device const> gpu, std::shared_ptr<cuda::fusion_kernels const> with);

    std::shared_ptr<cuda::device const> on;
    communicator ranks;
    cuda::unique_stream stream;
    std::shared_ptr<cuda::fusion_kernels const> kernels;  ///< null without kernels: tensors are then copied one by one
    device_scratch first, second;
    cuda::unique_pinned staging;  ///< host memory for Adasum, of `staging_bytes`
    std::size_t staging_bytes = 0;

    cuda::stream_handle queue() const noexcept { return stream.get().handle; }
    void check(int code, char const* call) const { cuda::check(on->with(), code, call); }
};

/// Collective over the ranks of `host`, blocking; `options` may name the backend. Null where no rank could make it, `refusal`
/// saying why; throws where some could.
std::unique_ptr<device_lane> open_lane(communicator& host, comm_options const& options, gpu_access& gpu, std::string& refusal);

}  // namespace muster::detail
