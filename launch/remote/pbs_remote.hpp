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
/// before the first dot; `host` itself without a dot. Pure.
std::string spelled_as_in(std::string_view node_file, std::string_view host);

/// PBS's own file of the job's hosts, below PBS_HOME; empty if there is none. PBS_NODEFILE may name a file of the user's, and
/// pbs_tmrsh takes a line's number in it for the number of a host in PBS's own. Pure.
std::string own_node_file(std::string_view pbs_conf, std::string_view job_id);

/// The words of bash that give a task this process' umask and soft limits, which PBS does not pass on to the other hosts.
std::string umask_and_limits();

/// `muster tmrsh [--stay] HOST COMMAND…`, which engines call as if it were ssh: a shell on HOST, a host of this PBS job, runs the words
/// joined by blanks. Runs pbs_tmrsh, with SIGTERM and SIGINT ignored: PBS ends the job's first host with SIGTERM, and an
/// engine that is still ending its ranks must not lose its daemons before that. Returns the command's exit code; 0 if pbs_tmrsh
/// was killed, as the launcher does with one that does not return (remote_group.cpp). With --stay it ends no sooner than its
/// parent where pbs_tmrsh has lost its pbs_mom, as when that is started anew: the command runs on. Throws errc::unavailable outside
/// of a PBS job.
int tmrsh_command(std::vector<std::string> const& words, environment const& variables);

/// The text of a script for `sh` that becomes `muster tmrsh`: engines divide the words of their agent at blanks, and the path of `muster` may
/// have some. `stays`: with --stay. Pure.
std::string tmrsh_script(std::string const& muster, bool stays = false);

}  // namespace muster
