// The backend `tcp` joins ranks on several hosts by its own sockets, without MPI.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Says why the ranks could not find each other; nothing if their addresses are given (comm_options::addresses), or there is
/// PMIx.
std::optional<std::string> tcp_unavailable(identity const& who, comm_options const& options);

/// Collective over the ranks of `who`, within options.deadline. They tell each other by PMIx where they listen, unless options.addresses says so, and
/// prove who they are by keys made for that: see comm/tcp/handshake.hpp. Connections are made when two ranks first need one; what goes over them is
/// not encrypted. When a rank's process ends, its connections end, and all others name it at once. Throws comm_error as the mpi backend does,
/// errc::unavailable without PMIx and addresses, parse_error for a list of addresses that does not parse.
std::unique_ptr<collective_backend> make_tcp_backend(identity const& who, comm_options const& options);

/// Returns where this process listens for the ranks of future worlds, as comm_options::addresses takes it: opens the socket at the first call, and
/// keeps it. `host` names this machine in messages. Thread safe. Throws errc::usage for an interface without addresses, errc::system.
std::string tcp_address(std::string const& host, std::string const& interface);

}  // namespace muster
