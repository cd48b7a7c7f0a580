// Hosts that the user names inside a scheduler's job.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "launch/scheduler/hosts/hostfile.hpp"
#include "launch/scheduler/scheduler_sources.hpp"

namespace muster {

/// What --hostfile or -H names. Throws errc::not_found if there is no such file, parse_error.
std::vector<host_entry> named_hosts(scheduler_sources const& sources, allocation_choice const& choice);

/// Whether both are names of one host: equal, or equal up to the first dot where one of them has no domain. Case does not matter.
bool same_host(std::string_view a, std::string_view b) noexcept;

/// The job's nodes that `chosen` names, in the order of `chosen`, spelled as the job spells them. Slots that are given take the
/// place of the job's, and a node offers no more GPUs than slots. `option` has named them. Throws errc::usage naming a host that is not in the job, or two names of one.
allocation choose_hosts(allocation const& job, std::span<host_entry const> chosen, std::string_view option);

}  // namespace muster
