// The backend over NCCL. Serves tensors in the memory of NVIDIA GPUs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/backend/rendezvous/gather_bytes.hpp"
#include "comm/cuda/driver.hpp"
#include "comm/nccl/library/nccl_library.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Says what was looked for and not found: NCCL, the CUDA driver, a GPU.
std::optional<std::string> nccl_unavailable(identity const& who, comm_options const& options);

/// Collective, also over ranks that nccl_unavailable() refuses: what one of them lacks is thrown on all, before anything is made
/// (comm_error with the first such rank's code, naming those ranks). Meets by PMIx, makes a non-blocking communicator of NCCL's
/// on this rank's GPU (comm_options::device) and waits for it for at most options.deadline. Throws what gather_by_pmix and
/// cuda::choose_device throw, comm_error (errc::peer_failed) if the ranks contradict each other or share a GPU, comm_error
/// (errc::timeout), nccl_error, cuda_error.
///
/// Collectives run on a separate stream, in order; f16 and bf16 are added as NCCL adds them. Where one fails, or passes its
/// deadline, all communicators of this process on NCCL are aborted: each of their operations that has not finished throws,
/// whether or not the device says that it is through. Every thread may use its own communicators.
std::unique_ptr<collective_backend> make_nccl_backend(identity const& who, comm_options const& options);

/// The same for ranks that meet by `gather` in place of PMIx.
std::unique_ptr<collective_backend> make_nccl_backend_over(gather_function const& gather, identity const& who,
                                                           comm_options const& options);

namespace nccl {

/// What a backend is made of, where a test gives its own.
struct parts {
    found_library const* nccl = nullptr;
    cuda::found_driver const* driver = nullptr;
    gather_function gather;
};

std::optional<std::string> unavailable(parts const& from);
std::unique_ptr<collective_backend> make_backend(identity const& who, comm_options const& options, parts const& from);

}  // namespace nccl

}  // namespace muster
