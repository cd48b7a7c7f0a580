// Tells the interfaces whose addresses other machines have, too.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// Why the address of `interface` leads nobody here: it is a bridge of containers or virtual machines of this machine alone, of which
/// every such machine has one with the same address (docker0: 172.17.0.1), or it is a link-local address. Empty if it is none of
/// that. `sysfs`: /sys/class/net.
std::string why_not_unique(std::string_view interface, std::string_view address, std::string const& sysfs = "/sys/class/net");

}  // namespace muster
