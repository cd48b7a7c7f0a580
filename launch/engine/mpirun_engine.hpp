// Open MPI's mpirun (4 and 5) and PRRTE's prterun as an engine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/engine/engine_job.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/engine/mpi_family.hpp"

namespace muster {

/// A program that says it is Open MPI's or PRRTE's.
struct mpirun_program {
    std::string name;      ///< "mpirun", or its path where it does not lie in a system folder
    bool prrte = false;    ///< Open MPI 5, prterun: other names for the same options
    bool open_mpi = true;  ///< false: prterun
    program_version version;
    bool operator==(mpirun_program const&) const = default;
};

/// What `NAME --version` printed, or nothing if that is another's mpirun.
std::optional<mpirun_program> read_mpirun_version(std::string const& name, std::string_view said);

/// See engine_row.
std::optional<std::string> mpirun_unavailable(engine_job const& job, scheduler_sources const& sources);
engine_command mpirun_command(engine_job const& job, scheduler_sources const& sources);

/// The command line of a program that was found; `as_root`: an option tells Open MPI that this is intended. Pure.
engine_command mpirun_command_of(mpirun_program const& program, engine_job const& job, bool as_root);

}  // namespace muster
