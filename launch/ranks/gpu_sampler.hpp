// Samples how a node's GPUs are used, every few seconds while a run lasts.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "launch/hardware/gpu_state.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Returns the GPUs of a node that belong to the job: all that the node shows or, if some may belong to another job, only those
/// of ranks. NVIDIA only. Pure.
std::vector<gpu> gpus_to_sample(topology const& machine, std::vector<binding> const& ranks, bool only_of_ranks);

/// Looks on its own thread, since a driver may block a process for long just when its GPU has failed; the first time after a
/// second, so that short runs pay nothing. Does not run without GPUs, or if NVML knows none of them. However slow the driver is,
/// looking takes less than 0.05 % of a core.
class gpu_sampler {
  public:
    using sink = std::function<void(std::vector<gpu_use> const&)>;

    /// `take` is called from the loop.
    gpu_sampler(event_loop& loop, std::vector<gpu> gpus, sink take);
    /// Waits half a second for a look in progress, and then leaves it alone.
    ~gpu_sampler();
    gpu_sampler(gpu_sampler const&) = delete;
    gpu_sampler& operator=(gpu_sampler const&) = delete;

  private:
    struct state;  // shared with the thread, which may outlive this object inside a call that never returns
    void start();
    void on_event();

    event_loop& loop_;
    std::vector<gpu> gpus_;
    sink take_;
    event_loop::timer starts_ = 0;
    std::shared_ptr<state> state_;
};

}  // namespace muster
