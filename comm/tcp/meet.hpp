// The rendezvous of ranks over TCP: how each of them learns where the others listen.
#pragma once

#include <optional>
#include <string>

#include "comm/backend/comm_options.hpp"
#include "comm/tcp/world.hpp"
#include "pmix/identity.hpp"

namespace muster::tcp {

/// Why these ranks have no way to tell each other; nothing if they have.
std::optional<std::string> why_not_meet(identity const& who, comm_options const& options);

/// By options.addresses, else by PMIx within options.deadline: collective then. The processes are not known yet. Throws as gather_by_pmix() and parse_endpoint();
/// errc::usage for a list of another length than the world.
membership meet(identity const& who, comm_options const& options);

}  // namespace muster::tcp
