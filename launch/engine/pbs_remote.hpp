// Starts commands on the other hosts of a PBS job, as ssh would: through pbs_tmrsh, where nothing else may.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// PBS_EXEC of a pbs.conf, or nothing. Pure.
std::optional<std::string> pbs_exec(std::string_view pbs_conf);

/// The spelling of `host` that pbs_tmrsh takes: the line of the node file that is the same, else the first with the same name
/// before the first dot; `host` itself if there is none. Pure.
std::string spelled_as_in(std::string_view node_file, std::string_view host);

/// `muster tmrsh HOST COMMAND…`, which engines call as if it were ssh: a shell on HOST, a host of this PBS job, runs the words
/// joined by blanks. Becomes pbs_tmrsh, with SIGTERM and SIGINT ignored: PBS ends the job's first host with SIGTERM, and an
/// engine that is still ending its ranks must not lose its daemons before that. Throws errc::unavailable outside of a PBS job.
int tmrsh_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
