// The holder of the states that ranks keep, from before the first launcher to the end of the run: memory here, or a keeper on
// each node.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <optional>

#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// The guardian makes it; each launcher inherits it.
class state_holder {
  public:
    /// Throws errc::system.
    state_holder();
    ~state_holder();
    state_holder(state_holder const&) = delete;
    state_holder& operator=(state_holder const&) = delete;

    int memory() const noexcept { return memory_.get(); }  ///< for a run on one node

    /// Returns the process that leads the keepers, or 0. It outlives the launcher.
    pid_t leader() const noexcept { return leader_->load(); }
    /// Forks the leader for the nodes of `run`, also after the end of an earlier one. Call before any thread starts. Throws
    /// errc::system.
    void start_keepers(run_plan const& run);
    /// Makes it bring the states to where ranks will run. Throws errc::unavailable if it has ended, or has been ended because it
    /// had not answered for long; errc::timeout if it is not done within `time_left`.
    wire::states_placed place(wire::place_states const& where, std::optional<duration> time_left);
    /// Waits, for the guardian at the end, for a moment until keepers and leader have ended.
    void end() noexcept;

  private:
    unique_fd memory_;
    void empty_sockets() noexcept;

    unique_fd near_, far_;                  ///< the socket pair to the leader
    std::atomic<pid_t>* leader_ = nullptr;  ///< shared with later launchers and the guardian
};

}  // namespace muster
