// The probe: a process that an engine starts on a node, to inspect it before ranks start there.
#pragma once

#include <chrono>

#include "base/environment.hpp"
#include "base/units.hpp"

namespace muster {

/// Connects to the launcher, inspects this node (wire::examine), answers (wire::report), tries the connections it is asked for
/// (wire::reach), and ends on wire::bye, when the launcher is gone or after two minutes. Its number is `first` plus
/// the rank that the engine gave this process. Returns this process' exit code. Throws as connect_to_launcher does.
int run_probe(environment const& variables, int first);

// Clock and limits that the prober and its probes share.

/// A prober or a probe that is silent for so long is lost.
inline constexpr duration probe_lost_after{15};

/// Seconds since 1970 by this machine's clock.
inline double clock_now() {
    return duration(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace muster
