// The backend for allreduces of device memory in chunks. Each goes within the node by one backend, across the nodes by another.
#pragma once

#include <cstddef>
#include <memory>

#include "comm/backend/collective_backend.hpp"
#include "comm/cuda/device.hpp"
#include "comm/hierarchical/hierarchical_backend.hpp"

namespace muster::nccl {

/// What the backend is made of.
struct chunked_allreduce_parts {
    std::unique_ptr<collective_backend> staged;  ///< all ranks, device memory: what does not go in steps
    std::unique_ptr<collective_backend> node;    ///< groups.local, device memory
    std::unique_ptr<collective_backend> across;  ///< groups.across, host memory
    node_groups groups;                          ///< refusal: nothing goes in steps; `node` and `across` are null then
    std::shared_ptr<cuda::device const> on;
};

/// Allreduces from `from_bytes` on go in steps (hierarchical_backend.hpp), chunk by chunk:
///
///     on `node`:    scatter 1, scatter 2, gather 1, scatter 3, gather 2, …, scatter n, gather n-1, gather n
///     meanwhile:    the share of a chunk down to pinned memory, over `across`, and up again, between its scatter and its gather
///
/// so that `across` has one chunk while `node` has the next. The next allreduce begins behind the last gather. So the order of
/// the calls to `node`, which is NCCL and demands the same order on all ranks, depends on the program's calls alone and never on
/// how fast a network is; and one communicator of NCCL's does. order() is true once the last gather has been handed to the
/// device. Everything else is `staged`'s. Where a step fails, or is given up, all allreduces under way have failed. Throws
/// cuda_error.
std::unique_ptr<collective_backend> make_chunked_allreduce_backend(chunked_allreduce_parts parts, std::size_t from_bytes,
                                                                   std::size_t chunk_bytes);

/// Elements of a chunk: as many as lie in `chunk_bytes`, but a multiple of the node's ranks, so that all have the same share of
/// it; at least one each. Pure.
std::size_t elements_of_chunk(std::size_t chunk_bytes, dtype type, std::size_t ranks) noexcept;

}  // namespace muster::nccl
