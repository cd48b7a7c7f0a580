// Addresses and connections between the nodes of a job.
#pragma once

#include <string>
#include <string_view>

#include "base/process/network.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"

namespace muster {

/// A connected, blocking socket. `address` is numeric or a name. Throws errc::timeout or errc::system, naming the address and the reason.
unique_fd connect_to(std::string const& address, int port, duration limit);

/// Whether this machine knows an address of that host.
bool has_address(std::string const& host);

/// Whether `address` (numeric) belongs to this machine; the name of the interface that has it.
std::string interface_that_has(std::string_view address);

/// The interface through which this machine reaches `address` (a name or numeric), by the kernel's routes; empty if there is
/// none. For one of its own addresses: the interface that has it.
std::string interface_towards(std::string const& address);

/// The address at which other nodes reach this one. In order: the address of `interface` if given; what `name` (the scheduler's name of this
/// node) resolves to, if that is here and no loopback; the end of `towards_launcher` (a connected socket); any address of this
/// machine; "127.0.0.1".
std::string reachable_address(std::string const& name, std::string const& interface, int towards_launcher);

}  // namespace muster
