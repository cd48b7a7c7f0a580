// Finds, in what srun prints, Slurm's report that somebody has cancelled a step.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Returns the step's number ("65.0") in a line such as "slurmstepd: error: *** STEP 65.0 ON node1 CANCELLED AT
/// 2026-11-28T03:00:00 DUE to SIGNAL Killed ***"; empty for any other line, also about a step that ends by a limit, a lost node
/// or a preemption. Pure.
std::string cancelled_step(std::string_view line);

/// Returns whether srun says in this line that it ends the step itself: because a task has ended badly ("srun: error: node1: task
/// 0: Killed") or could not be started, or because srun was asked to end ("srun: forcing job termination"). The step then prints
/// the same words. Pure.
bool tells_of_own_end(std::string_view line);

/// Reads what srun prints, in pieces.
class step_words {
  public:
    void take(std::string_view bytes);
    /// Returns the step that was cancelled, and not ended by its srun; empty: no step was.
    std::string const& cancelled() const noexcept { return cancelled_; }

  private:
    void take_line(std::string_view line);

    std::string part_;
    std::string cancelled_;
    bool by_srun_ = false;
};

}  // namespace muster
