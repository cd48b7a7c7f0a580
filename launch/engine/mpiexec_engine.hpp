// The mpiexec of MPICH (Hydra) and of HPE's PALS as an engine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/engine/engine_job.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/engine/mpi_family.hpp"

namespace muster {

struct mpiexec_program {
    enum class maker { hydra, pals };
    maker from = maker::hydra;
    std::string name;  ///< as it is called
    program_version version;
    std::vector<std::string> launchers;  ///< Hydra's: "ssh", "slurm" …
    bool operator==(mpiexec_program const&) const = default;
};

/// What `NAME --version` printed, or nothing if that is neither.
std::optional<mpiexec_program> read_mpiexec_version(std::string const& name, std::string_view said);

/// See engine_row.
std::optional<std::string> mpiexec_unavailable(engine_job const& job, scheduler_sources const& sources);
engine_command mpiexec_command(engine_job const& job, scheduler_sources const& sources);

/// The one on PATH, if it is Hydra's or PALS'.
std::optional<mpiexec_program> find_mpiexec(scheduler_sources const& sources);

}  // namespace muster
