// The holder of the states that ranks keep, from before the first launcher to the end of the run: memory here, or a keeper on
// each node.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <optional>

#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "launch/settings/part_functions.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// The guardian makes it; each launcher inherits it.
class state_holder final : public state_keeping {
  public:
    /// Throws errc::system.
    state_holder();
    ~state_holder() override;
    state_holder(state_holder const&) = delete;
    state_holder& operator=(state_holder const&) = delete;

    pid_t leader() const noexcept override { return leader_->load(); }
    kept_places make_ready(run_plan const& run, allocation const& everywhere, bool elsewhere) override;
    void end() noexcept override;

  private:
    kept_places settle_here(run_plan const& run);
    /// Forks the leader for the nodes of `run`, also after the end of an earlier one. Call before any thread starts. Throws
    /// errc::system.
    void start_keepers(run_plan const& run);
    /// Makes it bring the states to where ranks will run. Throws errc::unavailable if it has ended, or has been ended because it
    /// had not answered for long; errc::timeout if it is not done within `time_left`.
    wire::states_placed place_states(wire::place_states const& where, std::optional<duration> time_left);
    void empty_sockets() noexcept;

    unique_fd memory_;                      ///< for a run on one node
    unique_fd near_, far_;                  ///< the socket pair to the leader
    std::atomic<pid_t>* leader_ = nullptr;  ///< shared with later launchers and the guardian
};

}  // namespace muster
