// A watch on the reductions of a training: splits their time into what was hidden, exposed, and waited for others.
#pragma once

#include <chrono>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/gradients/gradient_reducer.hpp"

namespace muster {

/// Seconds of one rank over an epoch.
struct communication_split {
    double finish_s = 0;  ///< in gradient_reducer::finish: waiting_s and what of exposed_s is not in starting reductions
    double hidden_s =
        0;  ///< of the backward pass, while a reduction was under way; its end is seen when the next gradient is ready
    double exposed_s = 0;  ///< starting reductions during the backward pass, and waiting for them on the rank that waited least
    double waiting_s = 0;  ///< what this rank waited beyond the one that waited least in the same step, which came last
};

/// Stands between the backward pass and the reducer. One thread.
class communication_watch {
  public:
    explicit communication_watch(gradient_reducer& reducer) : reducer_(reducer) {}

    void begin();                   ///< of an epoch
    void ready(std::size_t index);  ///< gradient_reducer::ready
    void finish();                  ///< gradient_reducer::finish
    /// Of the epoch. Collective over the reducer's ranks, which have made the same number of steps; compares them step by step.
    communication_split end(communicator& ranks);

  private:
    using clock = std::chrono::steady_clock;

    gradient_reducer& reducer_;
    bool under_way_ = false;
    clock::time_point last_{};
    double hidden_ = 0, starting_ = 0;
    std::vector<float> waits_;  ///< in finish, a step
};

}  // namespace muster
