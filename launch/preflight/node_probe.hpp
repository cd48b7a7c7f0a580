// The probe: a process that an engine starts on a node, to inspect it before ranks start there; and what it inspects.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// Runs a probe: `muster probe FIRST`. Connects to the launcher, inspects this node (wire::examine), answers (wire::report), tries
/// the requested connections (wire::reach), and ends this process on wire::bye, when the launcher is gone or after two minutes. Its
/// number is FIRST plus the rank that the engine gave this process. Throws as connect_to_launcher does.
int probe_command(std::vector<std::string> const& args, environment const& variables);

// Limits that the prober and its probes share.

/// A prober or a probe that is silent for this long is lost.
inline constexpr duration probe_lost_after{15};

// Inspects this machine before ranks start on it.

/// Inspects this machine. Returns shortly after the limit at the latest: what hangs (a dead file server, a name service that does
/// not answer) goes on in other threads, and is then `unfinished`. Does not set the port and the times. `towards_launcher` is a
/// socket connected to it, or -1.
node_report inspect_node(node_question const& asked, environment const& own_variables, int towards_launcher);

// Makes the question that a probe answers about its node.

/// Returns the question about one of `nodes` (indices into the allocation's): the program, and the names of all of them (of many:
/// a sample). `run.options.command` may be empty.
node_question make_node_question(run_plan const& run, std::vector<int> const& nodes, int node);

}  // namespace muster
