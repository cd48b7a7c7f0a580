// Flux's word on why a job is being ended, out of its log of events.
#pragma once

#include <chrono>
#include <string_view>

#include "base/environment.hpp"
#include "launch/watch/job_end.hpp"

namespace muster {

/// From `flux job eventlog --format=json`, an event a line: the first exception of severity 0, which ends a job. A job without one goes on; a
/// text without events says nothing. Pure.
job_end parse_flux_events(std::string_view events);

/// Asks the instance that the job is one of: of a job's script that is its parent. Asks again, for 0.3 s, while the job
/// seems to go on. Takes `patience` for each question at most. Never throws for what Flux does.
job_end ask_flux_job_end(allocation const& given, environment const& variables, std::chrono::milliseconds patience);

/// The hosts that `flux resource status` calls offline, as R spells them. Pure.
std::vector<std::string> parse_flux_hosts(std::string_view printed);

/// Those of the job that its own instance has lost. Takes `patience` at most. Never throws for what Flux does.
std::vector<std::string> ask_flux_down_nodes(environment const& variables, std::chrono::milliseconds patience);

}  // namespace muster
