// Addresses of this machine, and sockets that listen on them or notice that the other end is gone.
#pragma once

#include <sys/socket.h>

#include <optional>
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

/// Lists the addresses of all interfaces that are up, without link-local ones. Throws errc::system.
std::vector<interface_address> all_addresses(bool with_loopback);

/// Addresses of this machine that other machines may reach: interfaces that are up, no loopback, no link-local ones; IPv4 first,
/// and the interface of the default route before others. Throws errc::system.
std::vector<interface_address> own_addresses();

/// Returns whether an interface of that name has an address here.
bool has_interface(std::string_view interface);

/// The addresses of one interface. `named_by`, the option or variable that names it, begins the message. Throws errc::usage, naming the interfaces
/// there are, if it has none.
std::vector<interface_address> addresses_of(std::string_view interface, std::string_view named_by = "--network-interface");

/// Returns why the address of `interface` leads nobody here: it is a bridge of containers or virtual machines of this machine alone, of which
/// every such machine has one with the same address (docker0: 172.17.0.1), or it is a link-local address. Empty if it is none of
/// that. `sysfs`: /sys/class/net.
std::string why_not_unique(std::string_view interface, std::string_view address, std::string const& sysfs = "/sys/class/net");

/// The TCP ports that muster may listen on for other nodes, both ends included.
struct port_range {
    int first = 0;
    int last = 0;
    bool operator==(port_range const&) const = default;
};
/// "40000-41000". Throws parse_error that names `origin`. Pure.
port_range parse_port_range(std::string_view text, std::string_view origin);

/// Makes this process listen for other nodes on ports of this range only; without a call it takes any. What listens on 127.0.0.1 is not concerned. Any thread may
/// call it: a process has one range, which its start or its launcher tells (MUSTER_PORTS).
void use_ports(port_range range) noexcept;
std::optional<port_range> ports_in_use() noexcept;

/// A listening socket on all addresses of this machine, IPv4 and IPv6, or on one numeric `address`; `port` 0 picks one. Throws errc::system; errc::unavailable if
/// no port of the range is free.
struct listener {
    unique_fd socket;
    int port = 0;
};
listener listen_on_all(int port = 0);
listener listen_on(std::string const& address);

/// A numeric address and port for connect(); length 0 if `address` is invalid.
struct socket_address {
    sockaddr_storage storage{};
    socklen_t length = 0;
    sockaddr const* get() const noexcept { return reinterpret_cast<sockaddr const*>(&storage); }
};
socket_address parse_address(std::string const& address, int port) noexcept;

/// Makes the kernel notice within `limit` that the other end's machine is gone: keep-alive probes when nothing is sent, and a
/// limit on what stays unacknowledged. A process that is merely stopped does not count as gone.
void detect_lost_peer(int socket, duration limit) noexcept;

/// "10.0.0.1", "fe80::1%eth0"; IPv4 as such, also when it came over an IPv6 socket. Empty if it is neither.
std::string numeric_address(sockaddr const* address, socklen_t length);

/// "10.0.0.1:4711", "[fe80::1]:4711".
std::string with_port(std::string_view address, int port);

}  // namespace muster
