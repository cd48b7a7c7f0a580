// The home folder of a user who has none.
#pragma once

#include "base/environment.hpp"

namespace muster {

/// Sets HOME to / in `variables` and for this process where it is not set and the user has no entry in passwd, as in containers that run under any number:
/// the PMIx library, which asks both, would use a null pointer. True if it has done so. Call from main before any thread is started.
bool provide_home(environment& variables);

}  // namespace muster
