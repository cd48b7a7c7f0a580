// Names of hosts: this machine's own, and the parts of a name as users and schedulers write it.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// This machine's name as it says it itself: mostly short, on some sites with the domain.
std::string host_name();

/// This machine's name up to the first dot, as schedulers and people write it.
std::string short_host_name();

/// The host of "user@host", as host files may have it.
std::string_view without_user(std::string_view name) noexcept;

/// "gpu12" of "gpu12.cluster.org". Not for addresses.
std::string_view short_name(std::string_view name) noexcept;

}  // namespace muster
