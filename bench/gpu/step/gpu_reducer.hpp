// The reducer of gradients in a GPU's memory: averages buckets over the ranks beside the backward pass.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu/layers/gpu_compute.hpp"
#include "bench/network/parameter_table.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// A run of gradients that is reduced in one piece.
struct gpu_bucket {
    std::size_t first = 0, count = 0;  ///< floats
    std::size_t after_layer = 0;       ///< whose backward pass completes it
    bool operator==(gpu_bucket const&) const = default;
};

/// Cuts the gradients in the order in which the backward pass, last layer first, completes them, as plan_buckets (comm/gradients)
/// does. Pure.
std::vector<gpu_bucket> plan_gpu_buckets(parameter_table const& table, std::size_t layers, std::size_t bucket_bytes);

/// One thread. Every rank makes the same calls.
class gpu_reducer {
  public:
    virtual ~gpu_reducer() = default;

    /// Whether reduce() and join() wait for nothing on the host, so that a graph may be captured of them.
    virtual bool in_graph() const noexcept = 0;
    /// "nccl in the graph", for people.
    virtual std::string_view name() const noexcept = 0;
    /// Averages bucket `index`, in place, behind what the stream holds now; the stream goes on meanwhile.
    virtual void reduce(std::size_t index) = 0;
    /// What is put on the stream from now on waits, on the device, for all buckets of the step.
    virtual void join() = 0;
    /// The host waits for what `event` stands behind on the stream. Throws comm_error where another rank does not come within the
    /// deadline.
    virtual void wait_for(cuda::event_handle event) = 0;
    /// The host waits for everything on the stream, and trusts it: throws as wait_for() does, and what made a reduction fail.
    virtual void wait() = 0;
};

/// How the gradients go.
enum class gpu_reduction {
    graph,  ///< NCCL's own allreduce on a stream of its own, captured into the step's graph
    parts,  ///< the communicator's allreduce, any backend for device memory, between the graphs of the parts
};

/// Collective. One rank reduces nothing. `device_options` choose GPU and backend (comm_options). Throws what communicator::for_device
/// throws, nccl_error, comm_error.
std::unique_ptr<gpu_reducer> make_gpu_reducer(gpu_reduction how, communicator& ranks, comm_options const& device_options,
                                              gpu_compute const& with, float* gradients, std::vector<gpu_bucket> buckets);

}  // namespace muster
