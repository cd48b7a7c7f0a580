// What looks at a node before ranks start there: the shim's other form.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// Calls the launcher, looks at this node as it is told (wire::examine), tells (wire::report), tries the connections it is told
/// to (wire::reach), and ends when it is sent home, when the launcher is gone or after two minutes. Its number is `first` plus
/// the rank that the engine gave this process. Returns this process' exit code. Throws as connect_to_launcher does.
int run_probe(environment const& variables, int first);

}  // namespace muster
