// The table of engines: each starts the rank shims on the nodes with its own command line.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/scheduler/scheduler_sources.hpp"
#include "launch/system/open_files.hpp"

namespace muster {

// Starts an engine's command; its shims connect to the launcher.

struct standard_fds {
    int in = -1;  ///< -1: /dev/null
    int out = -1;
    int err = -1;
};

/// Starts it in its own process group, with the limit of open files that this process inherited. Throws errc::system, and
/// program_error if there is no such program.
pid_t start_engine(engine_command const& command, more_open_files const& files, standard_fds const& fds);

struct engine_row {
    std::string_view name;  ///< as in --engine NAME
    /// Returns why it cannot run this job here; nothing if it can. May run the engine's programs (srun --mpi=list, mpirun
    /// --version).
    std::optional<std::string> (*unavailable)(engine_job const& job, scheduler_sources const& sources);
    /// Throws errc::unavailable, and errc::placement if the engine cannot make this layout.
    engine_command (*command)(engine_job const& job, scheduler_sources const& sources);
    /// Returns the command that ends the scheduler's step of the shims ("4242.0") from outside, as scancel does; empty: there is
    /// no such command.
    std::vector<std::string> (*cancel)(std::string const& step);
};

/// Returns srun, remote, mpirun, mpiexec, in this order; remote comes last for programs of an MPI library. The engine for one
/// node (embedded) is not in this table: it starts ranks itself.
std::span<engine_row const> engines() noexcept;

/// Returns the first that can run the job, or the one called `forced` (may be empty). Adds a line for each refusal to `tried`.
/// Throws errc::unavailable with all reasons, and one thing to do, if no engine can.
engine_row const& choose_engine(engine_job const& job, scheduler_sources const& sources, std::string_view forced,
                                std::vector<std::string>* tried = nullptr);

/// Returns what the user should know about that engine for this number of hosts: that it is not the usual one, or that no engine
/// with a tree is here; mostly empty.
std::string note_on_size(engine_job const& job, scheduler_sources const& sources, std::string_view engine);

/// Returns the command as lines for a shell: its files as here-documents, then the variables in which it differs from `base`,
/// then argv.
std::string shell_text(engine_command const& command, environment const& base);

}  // namespace muster
