// The rows of the table of schedulers: each checks for a job of one scheduler, and reads its allocation. See scheduler_row.
#pragma once

#include <chrono>
#include <cstdint>
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

// Points in time as schedulers write them.

/// So many seconds after 1970; nothing for what is no time of a job: not above 0, or beyond the year 2190. The clock counts
/// nanoseconds in 64 bits, which 9.2e9 seconds would overflow; a walltime may still be added to the result.
inline std::optional<std::chrono::system_clock::time_point> from_epoch(std::int64_t seconds) noexcept {
    if (seconds <= 0 || seconds > 7'000'000'000) return std::nullopt;
    return std::chrono::system_clock::time_point{std::chrono::seconds{seconds}};
}

}  // namespace muster
