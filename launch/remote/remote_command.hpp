// The commands by which a remote run starts: `muster remote`, which the launcher runs as its engine, and `muster agent`, once a host.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// `muster remote HOSTS [OPTIONS] -- SHIM…`: see remote_starter. Throws errc::usage.
int remote_command(std::vector<std::string> const& args, environment const& variables);

/// `muster agent NUMBER COUNT ADDRESSES TICKET`: see host_agent. Throws errc::usage.
int agent_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
