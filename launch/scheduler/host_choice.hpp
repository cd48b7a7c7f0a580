// Selects hosts that the user names inside a scheduler's job.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "launch/scheduler/hosts/hostfile.hpp"
#include "launch/scheduler/scheduler_sources.hpp"

namespace muster {

/// Returns the hosts of --hostfile or -H. Throws errc::not_found if there is no such file, parse_error.
std::vector<host_entry> named_hosts(scheduler_sources const& sources, allocation_choice const& choice);

/// Returns whether both name one host: they are equal, or equal up to the first dot if one of them has no domain. Ignores case.
bool same_host(std::string_view a, std::string_view b) noexcept;

/// Returns the job's nodes that `chosen` names, in the order of `chosen`, spelled as the job spells them. Given slots replace the
/// job's, and a node offers no more GPUs than slots. `option` is the option with the names. Throws errc::usage naming a host that
/// is not in the job, or two names of one host.
allocation choose_hosts(allocation const& job, std::span<host_entry const> chosen, std::string_view option);

}  // namespace muster
