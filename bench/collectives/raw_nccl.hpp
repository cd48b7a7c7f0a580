// NCCL alone, as a peer of the nccl backend: makes NCCL's own calls as other programs do.
#pragma once

#include <memory>
#include <string>

#include "bench/collectives/collectives_case.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/nccl/library/nccl_comm.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// A communicator of NCCL's over all ranks, and a stream.
class raw_nccl {
  public:
    /// Collective. The ranks meet by PMIx. Throws errc::unavailable with what was looked for and not found, nccl_error,
    /// cuda_error, comm_error.
    raw_nccl(identity const& who, std::shared_ptr<cuda::device const> on, duration deadline);
    raw_nccl(raw_nccl const&) = delete;
    raw_nccl& operator=(raw_nccl const&) = delete;
    ~raw_nccl();

    /// Puts the collective on the stream by NCCL's own call and waits for the stream.
    void run(collective_case const& of, tensor_view in, tensor_view out);
    /// Returns when all ranks have called it.
    void barrier();
    std::string version() const;  ///< "NCCL 2.28.9"

  private:
    void put(collective const& what, nccl::op how);

    identity who_;
    std::shared_ptr<cuda::device const> on_;
    duration deadline_;
    cuda::unique_stream stream_;
    cuda::unique_memory scratch_;
    nccl::nccl_comm comm_;
};

/// The GPU that is this rank's, as the nccl backend chooses it. Throws errc::unavailable if there is no GPU.
std::shared_ptr<cuda::device const> gpu_of(identity const& who);

/// Returns "" if NCCL and a GPU are here, else what is missing.
std::string nccl_lacks();

}  // namespace muster
