// Inspects this machine before ranks start on it.
#pragma once

#include <vector>

#include "base/environment.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/wire/node_report.hpp"

namespace muster {

/// Inspects this machine. Returns within the limit, and a moment: what hangs (a dead file server, a name service that does not
/// answer) goes on in other threads, and is then `unfinished`. Does not fill in the port and the times.
/// `towards_launcher` is a socket connected to it, or -1.
node_report inspect_node(node_question const& asked, environment const& own_variables, int towards_launcher);

// Makes the question that a probe answers about its node.

/// The question about one of `nodes` (indices into the allocation's): the program, and the names of all of them (of many: a
/// sample). `run.options.command` may be empty.
node_question make_node_question(run_context const& run, std::vector<int> const& nodes, int node);

}  // namespace muster
