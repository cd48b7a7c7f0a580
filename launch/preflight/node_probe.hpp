// The probe: a process that an engine starts on a node, to inspect it before ranks start there.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// Connects to the launcher, inspects this node (wire::examine), answers (wire::report), tries the connections it is asked for
/// (wire::reach), and ends on wire::bye, when the launcher is gone or after two minutes. Its number is `first` plus
/// the rank that the engine gave this process. Returns this process' exit code. Throws as connect_to_launcher does.
int run_probe(environment const& variables, int first);

}  // namespace muster
