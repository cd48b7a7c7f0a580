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

/// Starts it in its own process group, with the limit of open files that this process inherited. Throws errc::system,
/// program_error if there is no such program.
pid_t start_engine(engine_command const& command, more_open_files const& files, standard_fds const& fds);

struct engine_row {
    std::string_view name;  ///< as in --engine NAME
    /// Why it cannot run this job here; nothing if it can. May ask the engine's programs (srun --mpi=list, mpirun --version).
    std::optional<std::string> (*unavailable)(engine_job const& job, scheduler_sources const& sources);
    /// Throws errc::unavailable, errc::placement if this layout is beyond the engine.
    engine_command (*command)(engine_job const& job, scheduler_sources const& sources);
    /// What ends from outside the scheduler's step that the shims are in ("4242.0"), as scancel does; empty: there is no such
    /// thing.
    std::vector<std::string> (*cancel)(std::string const& step);
};

/// srun, remote, mpirun, mpiexec, in this order; remote is the last one for programs of an MPI library. The engine for one node (embedded) is not in this table: it starts ranks itself.
std::span<engine_row const> engines() noexcept;

/// The first that can run the job, or the one called `forced` (may be empty). Refusals go to `tried`, a line each. Throws
/// errc::unavailable with all reasons, and one thing to do, if there is none.
engine_row const& choose_engine(engine_job const& job, scheduler_sources const& sources, std::string_view forced,
                                std::vector<std::string>* tried = nullptr);

/// What the user should know of that engine, chosen for so many hosts: that another one than usual was taken, or that none with a tree is
/// here; mostly empty.
std::string note_on_size(engine_job const& job, scheduler_sources const& sources, std::string_view engine);

/// The command as lines for a shell: its files as here-documents, then the variables in which it differs from `base`, then argv.
std::string shell_text(engine_command const& command, environment const& base);

}  // namespace muster
