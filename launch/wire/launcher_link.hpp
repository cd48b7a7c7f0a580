// Connects a shim to the launcher, and makes its first message.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// Connects to one of the addresses in MUSTER_LAUNCHER, the first behind which the launcher's half of
/// MUSTER_TOKEN is shown. Throws errc::usage without these variables, errc::unavailable naming what was tried.
unique_fd connect_to_launcher(environment const& variables);

/// The first message of this process, on `host`, as the engine's variables tell it.
wire::hello introduce_shim(environment const& variables, std::string const& host);

}  // namespace muster
