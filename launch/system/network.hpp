// Addresses and connections between the nodes of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// TCP ports picked and held until the ranks start.

/// Ports bound on all interfaces of this node, so that no other process gets them; released by the destructor, which must
/// run right before the ranks start. They are of the range of use_ports(), else they lie below the kernel's range for outgoing connections, so that in the moment between
/// that and the rank's own bind no other connection takes them.
class held_ports {
  public:
    /// Throws errc::unavailable if there are not `count` free ports.
    explicit held_ports(int count);
    std::vector<int> const& numbers() const noexcept { return numbers_; }

  private:
    std::vector<int> numbers_;
    std::vector<unique_fd> sockets_;
};

// Names of hosts: this machine's own, and the parts of a name as users and schedulers write it.

/// This machine's name as it says it itself: mostly short, on some sites with the domain.
std::string host_name();

/// This machine's name up to the first dot, as schedulers and people write it.
std::string short_host_name();

/// The host of "user@host", as host files may have it.
std::string_view without_user(std::string_view name) noexcept;

/// "gpu12" of "gpu12.cluster.org". Not for addresses.
std::string_view short_name(std::string_view name) noexcept;

}  // namespace muster
