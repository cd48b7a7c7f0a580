// A timeline of a program's phases: logs at level trace when each ended and how long it took.
#pragma once

#include <string_view>

namespace muster {

/// Logs, at level trace alone, that the phase called `name` ends now: milliseconds since the process began (up to
/// the first call its processor time, so with the loading of its libraries), those since the last phase ended, and processor time
/// of the process. Costs a comparison otherwise. A child by fork goes on from its parent's time. From one thread.
void end_phase(std::string_view name);

}  // namespace muster
