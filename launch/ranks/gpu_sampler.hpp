// The sampler of a node's GPUs: looks every few seconds, while a run lasts, how they are used.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "launch/hardware/gpu_state.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Those GPUs of a node whose use is the job's: all that the node shows, or, where others of them may be another job's, only those of ranks.
/// Of NVIDIA only. Pure.
std::vector<gpu> gpus_to_sample(topology const& machine, std::vector<binding> const& ranks, bool only_of_ranks);

/// Looks on its own thread, since a driver may let a process wait for long just when its GPU has failed; the first time after a second,
/// so that short runs pay nothing. Without GPUs, or where NVML knows none of them, nothing runs. However slow the driver is, looking takes
/// less than 0.05 % of a core.
class gpu_sampler {
  public:
    using sink = std::function<void(std::vector<gpu_use> const&)>;

    /// `take` is called from the loop.
    gpu_sampler(event_loop& loop, std::vector<gpu> gpus, sink take);
    /// A look that is under way has half a second to end; it is left alone then.
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
