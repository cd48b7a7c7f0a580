// Addresses and connections between the nodes of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process/network.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"

namespace muster {

/// Returns a connected, blocking socket. `address` is numeric or a name. Throws errc::timeout or errc::system, naming the address
/// and the reason.
unique_fd connect_to(std::string const& address, int port, duration limit);

/// Returns whether this machine can resolve that host's name to an address.
bool has_address(std::string const& host);

/// Returns the name of the interface with `address` (numeric); empty if it is not an address of this machine.
std::string interface_that_has(std::string_view address);

/// Returns the interface through which this machine reaches `address` (a name or numeric), by the kernel's routes, or an empty
/// text. If the address belongs to this machine, that is its interface.
std::string interface_towards(std::string const& address);

/// Returns the address at which other nodes reach this one. In order: the address of `interface` if given; what `name` (the
/// scheduler's name of this node) resolves to, if that is here and no loopback; the end of `towards_launcher` (a connected
/// socket); any address of this machine; "127.0.0.1".
std::string reachable_address(std::string const& name, std::string const& interface, int towards_launcher);

// TCP ports picked and held until the ranks start.

/// Holds ports bound on all interfaces of this node, so that no other process gets them; the destructor, which must run right
/// before the ranks start, releases them. They are in the range of use_ports(), or else below the kernel's range for outgoing
/// connections, so that no other connection takes them in the moment before a rank binds them.
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

/// Returns this machine's own name for itself: mostly short, on some sites with the domain.
std::string host_name();

/// Returns this machine's name up to the first dot, as schedulers and people write it.
std::string short_host_name();

/// Returns the host of "user@host", a form in host files.
std::string_view without_user(std::string_view name) noexcept;

/// Returns "gpu12" for "gpu12.cluster.org". Not for addresses.
std::string_view short_name(std::string_view name) noexcept;

}  // namespace muster
