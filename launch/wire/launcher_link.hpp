// How a shim finds the launcher, and what it says first.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// Connects to one of the addresses in MUSTER_LAUNCHER, the first behind which somebody shows the launcher's half of
/// MUSTER_TOKEN. Throws errc::usage without these variables, errc::unavailable naming what was tried.
unique_fd connect_to_launcher(environment const& variables);

/// The first word of this process, on `host`, as the engine's variables tell it.
wire::hello introduce_shim(environment const& variables, std::string const& host);

}  // namespace muster
