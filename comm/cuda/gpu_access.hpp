// The GPU of this rank, shared by the threads that submit tensors in its memory.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "comm/cuda/handles.hpp"

namespace muster::detail {

/// What a request with tensors in device memory has in addition to the others.
struct device_part {
    std::shared_ptr<cuda::device const> on;              // before what is on it
    cuda::unique_event given;                            ///< behind what the program's stream held when it was submitted
    std::shared_ptr<cuda::unique_event const> finished;  ///< behind its result; set before pending::handed
    cuda::unique_memory memory;                          ///< of an output that the exchange gave
};

/// Opens the GPU when it is first needed. Thread safe.
class gpu_access {
  public:
    /// `asked`: as comm_options::device.
    gpu_access(int asked, int local_rank) noexcept : asked_(asked), local_rank_(local_rank) {}

    /// Throws errc::unavailable where there is no driver or GPU, errc::placement, cuda_error.
    std::shared_ptr<cuda::device const> open();

    /// For a request whose tensors are worked on on `stream`. Throws as open() does.
    std::unique_ptr<device_part> mark(void* stream);

    /// The event of a request that has ended is used again.
    void take_back(cuda::unique_event given);

  private:
    int const asked_, local_rank_;
    std::mutex guard_;
    std::shared_ptr<cuda::device const> device_;
    std::vector<cuda::unique_event> spare_;
};

}  // namespace muster::detail
