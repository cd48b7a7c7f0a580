// Gathers the hosts of a run whose hosts come and go (--host-discovery-script): waits for enough of them, and chooses the slots
// of a generation.
#pragma once

#include <optional>

#include "launch/elastic/restart_policy.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Returns how many members the run may have at most.
int most_members(run_options const& options, run_life const& life);

/// The hosts that are used, each with as many slots as it has ranks.
struct gathered_hosts {
    allocation given;
    run_life life;             ///< with the hosts that there are and, of a later generation, its members
    std::optional<int> ranks;  ///< how many ranks a first generation has
};

/// Asks the script every second until there are slots for a generation: -n at the start (--min-np without -n), --min-np later.
/// Says once what it waits for. Throws errc::config if the script fails before it has ever answered, and errc::timeout after --elastic-timeout.
gathered_hosts gather_hosts(run_options const& options, environment const& variables, run_life life);

/// Returns how long a lost host stays out: at least until the processes left there have ended by themselves.
cool_down_range cool_down_of_hosts(run_options const& options);

/// Notes what the end of a generation means for the slots: those of failed ranks and of lost hosts cool down.
void note_failures(run_context const& run, generation_end const& end, double chance, host_pool& hosts);

}  // namespace muster
