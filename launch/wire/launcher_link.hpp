// Connects a shim to the launcher, and makes its first message.
#pragma once

#include <memory>
#include <string>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/secure_session.hpp"

namespace muster {

/// A connection whose other end, the launcher, has proved that it has the run's key.
struct launcher_link {
    unique_fd socket;
    std::unique_ptr<secure_session> session;
};

/// Connects to one of the addresses in MUSTER_LAUNCHER. It goes on to the next if an address does not answer, or answers without
/// the key of MUSTER_TOKEN; it retries one that connects and then says nothing for `patience`, since others may keep the launcher
/// busy. Throws errc::usage without these variables, errc::not_found if nobody listens at any of the addresses, and otherwise
/// errc::unavailable; the last two name what was tried.
launcher_link connect_to_launcher(environment const& variables, duration patience = duration(20));

/// Returns the first message of this process, on `host`, from the engine's variables.
wire::hello introduce_shim(environment const& variables, std::string const& host);

}  // namespace muster
