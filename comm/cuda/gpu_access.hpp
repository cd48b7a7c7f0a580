// The GPU of this rank, shared by the threads that submit tensors in its memory.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "comm/cuda/handles.hpp"

namespace muster::detail {

/// The part of a request that only tensors in device memory need.
struct device_part {
    std::shared_ptr<cuda::device const> on;              // before whatever is on it
    cuda::unique_event given;                            ///< follows what the program's stream held at the submission
    std::shared_ptr<cuda::unique_event const> finished;  ///< follows the result; set before pending_request::handed
    cuda::unique_memory memory;                          ///< of an output, if the exchange gave it
};

/// Opens the GPU when it is first needed. Thread safe.
class gpu_access {
  public:
    /// `asked`: as comm_options::device.
    gpu_access(int asked, int local_rank) noexcept : asked_(asked), local_rank_(local_rank) {}

    /// Throws errc::unavailable without a driver or GPU, errc::placement, cuda_error.
    std::shared_ptr<cuda::device const> open();

    /// Marks a request whose tensors the program works on on `stream`. Throws as open() does.
    std::unique_ptr<device_part> mark(void* stream);

    /// Takes back the event of an ended request, to use it again.
    void take_back(cuda::unique_event given);

  private:
    int const asked_, local_rank_;
    std::mutex guard_;
    std::shared_ptr<cuda::device const> device_;
    std::vector<cuda::unique_event> spare_;
};

}  // namespace muster::detail
