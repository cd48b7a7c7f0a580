// The removal of variables with which an outer launcher describes another process.
#pragma once

#include "base/environment.hpp"

namespace muster::pmix {

/// Removes what mpirun, prterun, Hydra, PALS, srun, jsrun, Flux or another muster set for the process that muster itself is, so
/// that ranks started below it do not take it for their own place: PMIX_*, PMI_*, PMI2_*, PALS_*, MPI_LOCAL*, HYDI_*, JSM_*,
/// MV2_COMM_WORLD_*, OMPI_COMM_WORLD_* and their like, MUSTER_RANK and its like, and Slurm's numbers of a step and a task
/// (SLURM_JOB_* stays). What a user sets stays: OMPI_MCA_*, PMIX_MCA_*, MPIR_CVAR_*, HYDRA_*, the settings MUSTER_*; but inside
/// an Open MPI job those OMPI_MCA_* that mpirun sets for its ranks go, and inside a muster those that muster set and nobody
/// changed. Pure.
void scrub_inherited(environment& variables);

/// The variable in which muster tells a muster started below what it set by itself: "NAME=VALUE;NAME=VALUE".
inline constexpr std::string_view defaults_variable = "MUSTER_OWN_DEFAULTS";

}  // namespace muster::pmix
