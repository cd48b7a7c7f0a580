// Slurm's own word, in what srun prints, on a step that somebody has cancelled.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// The step's number ("65.0") in a line such as "slurmstepd: error: *** STEP 65.0 ON node1 CANCELLED AT 2026-11-28T03:00:00 DUE to SIGNAL Killed ***";
/// empty for any other line, also of a step that ends by a limit, a lost node or a preemption. Pure.
std::string cancelled_step(std::string_view line);

/// Whether srun says in this line that a task of its step has ended badly ("srun: error: node1: task 0: Killed"): it then kills the others, and the
/// same words come for that. Pure.
bool tells_of_ended_task(std::string_view line);

/// Reads what srun prints, in pieces.
class step_words {
  public:
    void take(std::string_view bytes);
    /// The step that was cancelled before any of its tasks had ended badly; empty: none was.
    std::string const& cancelled() const noexcept { return cancelled_; }

  private:
    void take_line(std::string_view line);

    std::string part_;
    std::string cancelled_;
    bool task_ended_ = false;
};

}  // namespace muster
