// Provides a home folder for a user without one.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// Sets HOME to / in `variables` and for this process if it is not set and the user has no entry in passwd, e.g. in containers
/// that run under any number: the PMIx library, which asks both, would use a null pointer. Returns true if it has done so. Call
/// it from main before any thread starts.
bool provide_home(environment& variables);

}  // namespace muster
