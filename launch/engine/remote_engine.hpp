// muster's own start of ranks over several hosts, by ssh or PBS' TM, as an engine.
#pragma once

#include <optional>
#include <string>

#include "launch/engine/engine_job.hpp"
#include "launch/engine/engine_table.hpp"

namespace muster {

/// See engine_row.
std::optional<std::string> remote_unavailable(engine_job const& job, scheduler_sources const& sources);
engine_command remote_command_line(engine_job const& job, scheduler_sources const& sources);

}  // namespace muster
