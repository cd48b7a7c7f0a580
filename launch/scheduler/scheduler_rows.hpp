// The rows of the table of schedulers: each checks for a job of one scheduler, and reads its allocation. See scheduler_row.
#pragma once

#include <optional>
#include <string>

#include "launch/scheduler/read_allocation.hpp"

namespace muster {

std::optional<std::string> slurm_unavailable(scheduler_sources const& sources, allocation_choice const& choice);
allocation read_slurm(scheduler_sources const& sources, allocation_choice const& choice);

std::optional<std::string> pbs_unavailable(scheduler_sources const& sources, allocation_choice const& choice);
allocation read_pbs(scheduler_sources const& sources, allocation_choice const& choice);

std::optional<std::string> cobalt_unavailable(scheduler_sources const& sources, allocation_choice const& choice);
allocation read_cobalt(scheduler_sources const& sources, allocation_choice const& choice);

std::optional<std::string> lsf_unavailable(scheduler_sources const& sources, allocation_choice const& choice);
allocation read_lsf(scheduler_sources const& sources, allocation_choice const& choice);

std::optional<std::string> flux_unavailable(scheduler_sources const& sources, allocation_choice const& choice);
allocation read_flux(scheduler_sources const& sources, allocation_choice const& choice);

std::optional<std::string> hostfile_unavailable(scheduler_sources const& sources, allocation_choice const& choice);
allocation read_hostfile(scheduler_sources const& sources, allocation_choice const& choice);

std::optional<std::string> local_unavailable(scheduler_sources const& sources, allocation_choice const& choice);
allocation read_local(scheduler_sources const& sources, allocation_choice const& choice);

}  // namespace muster
