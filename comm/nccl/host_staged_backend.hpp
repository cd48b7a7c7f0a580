// The backend for device memory that copies through host memory. Another backend does the collective there.
#pragma once

#include <memory>

#include "comm/backend/collective_backend.hpp"
#include "comm/cuda/device.hpp"

namespace muster::nccl {

/// `rank` is this one's in `host`. Each collective is copied into pinned host memory, done there by `host`, and copied back; as
/// many at once as are started. Their results are those of `host`. Copies wait on the device for what the program's stream holds;
/// the host asks (done(), progress(), order()) before the next step begins. order() is true once the copy back has been handed to
/// the device. Of ticket 0 late_ranks() and abandon() are those of `host`. Everything that fails, or is given up, leaves its
/// pinned memory allocated, since the device or the network may still write to it. Throws cuda_error and what `host` throws.
std::unique_ptr<collective_backend> make_host_staged_backend(std::unique_ptr<collective_backend> host, int rank,
                                                             std::shared_ptr<cuda::device const> on);

}  // namespace muster::nccl
