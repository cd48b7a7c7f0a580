// Starts commands on the other hosts of a Flux job, as ssh would: through flux exec, by the broker on each host of the job.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launch/scheduler/scheduler_sources.hpp"

namespace muster {

/// Returns the number of the broker on `host`: its place in `hostlist`, which `flux getattr hostlist` prints ("node[1-4]"), by
/// the same name, else by the same name before the first dot. Takes the first of several brokers on one host. Returns nothing if
/// no broker is there. Pure. Throws parse_error naming `origin` for a text that is no hostlist.
std::optional<int> broker_on(std::string_view hostlist, std::string_view host, std::string_view origin);

/// Returns the words that run `command`, a line for a shell, on that broker's host. Leaves out the GPUs that `variables` name,
/// since they are this host's and flux exec would pass them on; but -1, which Flux gives to jobs without any, applies on all
/// hosts. Pure.
std::vector<std::string> flux_exec_words(int broker, std::string const& command, environment const& variables);

/// Runs `muster fluxrsh HOST COMMAND…`, which engines call as if it were ssh: a shell on HOST, a host of this Flux instance, runs
/// the words joined by blanks. Becomes flux exec, so that ending it ends the command: Flux kills what a vanished flux exec has
/// started. Throws errc::unavailable outside of Flux and for a host that the instance does not have.
int fluxrsh_command(std::vector<std::string> const& words, environment const& variables);

/// Returns the words of `muster fluxrsh`, by the path of `muster`, and the text of a script for `sh` that becomes it, for engines
/// that split the words of their agent at blanks. Pure.
std::vector<std::string> fluxrsh_words(std::string const& muster);
std::string fluxrsh_script(std::string const& muster);

/// Returns whether a remote shell's words are those of `muster fluxrsh`, and the shell's name in messages. Pure.
bool is_fluxrsh(std::vector<std::string> const& shell);
std::string remote_shell_name(std::vector<std::string> const& shell);

/// Returns why flux exec cannot start anything on this job's hosts; nothing if it can.
std::optional<std::string> flux_exec_unavailable(scheduler_sources const& sources);

}  // namespace muster
