// Gathers the hosts of a run whose hosts come and go (--host-discovery-script): waits for enough of them, and chooses the slots
// of a generation.
#pragma once

#include "launch/elastic/restart_policy.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Returns how many members the run may have at most.
int most_members(run_options const& options, run_life const& life);

/// Asks the script every second until there are slots for a generation: -n at the start (--min-np without -n), --min-np later.
/// Says once what it waits for. Sets the members of a later generation and, in the first one, the number of ranks in `place`.
/// Returns the hosts in use, each with as many slots as it has ranks. Throws errc::config if the script fails before its first
/// answer, and errc::timeout after --elastic-timeout.
allocation gather_hosts(run_context& run, placement_request& place);

/// Returns how long a lost host stays out: at least until the processes left there have ended by themselves.
cool_down_range cool_down_of_hosts(run_options const& options);

/// Notes what the end of a generation means for the slots: those of failed ranks and of lost hosts cool down.
void note_failures(run_context const& run, generation_end const& end, double chance, host_pool& hosts);

}  // namespace muster
