// Starts commands on the other hosts of a PBS job, as ssh would: through pbs_tmrsh, if nothing else is allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// Returns PBS_EXEC of a pbs.conf, or nothing. Pure.
std::optional<std::string> pbs_exec(std::string_view pbs_conf);

/// Returns the spelling of `host` that pbs_tmrsh takes: the identical line of the node file, else the first with the same name
/// before the first dot; `host` itself if it has no dot. Pure.
std::string spelled_as_in(std::string_view node_file, std::string_view host);

/// Returns PBS's own file of the job's hosts, below PBS_HOME; empty if it does not exist. PBS_NODEFILE may name a file of the
/// user's, and pbs_tmrsh takes a line's number in that as the number of a host in PBS's own. Pure.
std::string own_node_file(std::string_view pbs_conf, std::string_view job_id);

/// Returns the words of bash that give a task this process' umask and soft limits, which PBS does not pass on to the other hosts.
std::string umask_and_limits();

/// Runs `muster tmrsh [--stay] HOST COMMAND…`, which engines call as if it were ssh: a shell on HOST, a host of this PBS job,
/// runs the words joined by blanks. Runs pbs_tmrsh, with SIGTERM and SIGINT ignored: PBS ends the job's first host with SIGTERM,
/// and an engine that is still ending its ranks must not lose its daemons before that. Returns the command's exit code; 0 if
/// pbs_tmrsh was killed, as the launcher does with one that does not return (remote_group.cpp). With --stay it ends no sooner
/// than its parent if pbs_tmrsh has lost its pbs_mom, e.g. because that was restarted: the command runs on. Throws
/// errc::unavailable outside of a PBS job.
int tmrsh_command(std::vector<std::string> const& words, environment const& variables);

/// Returns the text of a script for `sh` that becomes `muster tmrsh`: engines split the words of their agent at blanks, and the
/// path of `muster` may contain some. `stays`: with --stay. Pure.
std::string tmrsh_script(std::string const& muster, bool stays = false);

}  // namespace muster
