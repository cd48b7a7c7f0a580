// Finds, in what srun prints, Slurm's report that somebody has cancelled a step.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Returns the step's number ("65.0") in a line such as "slurmstepd: error: *** STEP 65.0 ON node1 CANCELLED AT
/// 2026-11-28T03:00:00 DUE to SIGNAL Killed ***"; empty for any other line, also about a step that ends by a limit, a lost node
/// or a preemption. Pure.
std::string cancelled_step(std::string_view line);

/// Says who ends a step, according to a line of srun's output.
enum class step_ender {
    unknown,
    srun,   ///< because a task has ended badly or could not be started, or because srun was asked to end
    pmix,   ///< Slurm's PMIx, because a rank has left its MPI world
    slurm,  ///< the controller, whoever has asked it to: scancel, PMIx
};

/// Returns who ends the step by "srun: error: node1: task 0: Killed", "srun: forcing job termination", "slurmstepd-node2: error:
/// mpi/pmix_v4: _errhandler: … Error handler invoked: …", "srun: Job step aborted: …"; unknown for any other line. Pure.
step_ender ender_of_step(std::string_view line);

/// Reads what srun prints, in pieces. A step that srun or PMIx ends prints the same words as one that was cancelled, and so does
/// one that a rank ends by MPI_Abort, which leaves no other words.
class step_words {
  public:
    void take(std::string_view bytes);
    /// Returns the step that was cancelled, and not ended by its srun or by PMIx; empty: no step was.
    std::string const& cancelled() const noexcept { return cancelled_; }

  private:
    void take_line(std::string_view line);

    std::string part_;
    std::string cancelled_;
    step_ender ender_ = step_ender::unknown;
};

}  // namespace muster
