// Inspects this machine before ranks start on it.
#pragma once

#include "base/environment.hpp"
#include "launch/wire/node_report.hpp"

namespace muster {

/// Inspects this machine. Returns within the limit, and a moment: what hangs (a dead file server, a name service that does not
/// answer) goes on in other threads, and is then `unfinished`. Does not fill in the port and the times.
/// `towards_launcher` is a socket connected to it, or -1.
node_report inspect_node(node_question const& asked, environment const& own_variables, int towards_launcher);

}  // namespace muster
