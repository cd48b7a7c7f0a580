// Samples ranks of a node, the node and its GPUs every few seconds while a run lasts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/samples/rank_reader.hpp"
#include "launch/samples/run_samples.hpp"
#include "launch/samples/side_work.hpp"

namespace muster {

/// Says what to look at besides ranks.
struct sampled_node {
    duration every{0};      ///< between looks; 0: none
    bool itself = false;    ///< the node's own figures
    std::string interface;  ///< as for node_reader
    std::string towards;
    std::vector<gpu> gpus;
};

/// Looks on its own threads, GPUs on another one: a driver may block a process for long just when its GPU has failed, and a file system behind
/// which a rank waits may block who looks at the rank. The first look is after a second, so that short runs pay nothing. Looks at ranks and node take less
/// than 1 % of a core in each process that looks, and those at GPUs less than 0.05 %, however slow the driver is: then there are fewer.
class node_sampler {
  public:
    using ranks = std::function<std::vector<sampled_rank>()>;
    using sink = std::function<void(node_sample const&)>;

    /// Both are called from the loop's thread. What `take` gets may be a part: ranks and node, or GPUs alone. GPUs whose driver has not answered for half a
    /// minute have only number and name.
    node_sampler(event_loop& loop, sampled_node what, ranks to_look_at, sink take);
    /// Waits half a second for looks in progress, and then leaves them alone.
    ~node_sampler();
    node_sampler(node_sampler const&) = delete;
    node_sampler& operator=(node_sampler const&) = delete;

  private:
    struct eyes;  // of a thread: they may outlive this object inside a call that never returns
    void look();
    void look_at_gpus();
    void take_look(eyes const& of);

    event_loop& loop_;
    sampled_node what_;
    ranks to_look_at_;
    sink take_;
    event_loop::timer next_ = 0;
    bool silent_gpus_told_ = false;
    std::shared_ptr<eyes> of_ranks_, of_gpus_;
    side_work at_ranks_, at_gpus_;
};

}  // namespace muster
