// Reads the nodes of the scheduler's job that this process is in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/scheduler/allocation.hpp"
#include "launch/scheduler/scheduler_sources.hpp"

namespace muster {

struct scheduler_row {
    scheduler_kind kind;
    /// Returns why this process is in no job of this scheduler; nothing if it is in one.
    std::optional<std::string> (*unavailable)(scheduler_sources const& sources, allocation_choice const& choice);
    /// Throws parse_error with a caret, errc::not_found, errc::placement.
    allocation (*read)(scheduler_sources const& sources, allocation_choice const& choice);
};

/// Returns the rows in this order: hosts and host files that the user names, then slurm, pbs, cobalt, lsf, flux, and this node
/// alone.
std::span<scheduler_row const> schedulers() noexcept;

/// Reads the first available row, or the one asked for. `tried`, if given, gets a line for each refused row: "pbs: PBS_JOBID is
/// not set". Throws errc::unavailable, with the reason, if the one asked for is not available.
allocation read_allocation(scheduler_sources const& sources, allocation_choice const& choice,
                           std::vector<std::string>* tried = nullptr);

// Chooses among Slurm, PBS and Flux on a machine that has the programs of several.

/// Returns "Slurm" or "PBS", if this machine is configured to submit jobs to it; else "".
std::string_view cluster_of(environment const& variables);

/// Returns whether PBS is configured here (PBS_CONF_FILE, else /etc/pbs.conf) and Slurm, whose programs may be installed on a
/// cluster of PBS, is not.
bool prefers_pbs(environment const& variables);

/// Returns whether Flux, whose programs are also installed for use within other schedulers' jobs, is the scheduler here: this
/// process is in an instance (FLUX_URI), or the system has one (/run/flux/local).
bool prefers_flux(environment const& variables);

// The rows of the table of schedulers: each checks for a job of one scheduler, and reads its allocation. See scheduler_row.

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

/// Returns this many seconds after 1970; nothing for a number that is not a job's time: not above 0, or after the year 2190. The
/// clock counts nanoseconds in 64 bits, which 9.2e9 seconds would overflow; a walltime may still be added to the result.
inline std::optional<std::chrono::system_clock::time_point> from_epoch(std::int64_t seconds) noexcept {
    if (seconds <= 0 || seconds > 7'000'000'000) return std::nullopt;
    return std::chrono::system_clock::time_point{std::chrono::seconds{seconds}};
}

/// Returns the local time in a text of that form (strptime); nothing for any other text.
std::optional<std::chrono::system_clock::time_point> parse_local_time(std::string const& text, char const* form);

}  // namespace muster
