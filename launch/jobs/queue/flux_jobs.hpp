// Reads jobs of Flux as `flux jobs` prints them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/jobs/queue/queued_job.hpp"

namespace muster {

/// The format for `flux jobs --no-header`: fields separated by a character that no job's name or note contains.
inline constexpr char const* flux_jobs_format =
    "{id.f58}\x1f{state}\x1f{result}\x1f{returncode}\x1f{nnodes}\x1f{runtime!H}\x1f{duration!H}\x1f{t_run!D}\x1f"
    "{annotations.sched.t_estimate!D}\x1f{urgency}\x1f{exception.type}\x1f{exception.note}\x1f{dependencies}\x1f"
    "{annotations.sched.reason_pending}\x1f{name}";

/// Returns the jobs of these lines. Skips lines without the fields (a warning). Pure.
std::vector<queued_job> parse_flux_jobs(std::string_view printed);

/// Returns whether the state is that of a waiting job in Flux: "DEPEND", "PRIORITY", "SCHED". Pure.
bool is_waiting_in_flux(std::string_view state) noexcept;

/// Returns in words why such a job waits, from `reason` as parse_flux_jobs returns it. Pure.
std::string explain_flux_wait(queued_job const& job);

}  // namespace muster
