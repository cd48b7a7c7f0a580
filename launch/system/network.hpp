// Addresses and connections between the nodes of a job.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "base/units.hpp"

namespace muster {

struct interface_address {
    std::string interface;
    std::string address;  ///< numeric, IPv4 or IPv6
    bool operator==(interface_address const&) const = default;
};

/// Addresses of this machine that other machines may reach: interfaces that are up, no loopback, no link-local ones; IPv4 first,
/// and the interface of the default route before others. Throws errc::system.
std::vector<interface_address> own_addresses();

/// The addresses of one interface. Throws errc::usage, naming those there are, if it has none (--network-interface).
std::vector<interface_address> addresses_of(std::string_view interface);

/// A listening socket on all addresses of this machine, IPv4 and IPv6; `port` 0 picks one. Throws errc::system.
struct listener {
    unique_fd socket;
    int port = 0;
};
listener listen_on_all(int port = 0);

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

/// "10.0.0.1", "fe80::1%eth0"; IPv4 as such, also when it came over an IPv6 socket. Empty if it is neither.
std::string numeric_address(sockaddr const* address, socklen_t length);

/// "10.0.0.1:4711", "[fe80::1]:4711".
std::string with_port(std::string_view address, int port);

}  // namespace muster
