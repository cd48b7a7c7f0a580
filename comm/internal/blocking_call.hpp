// A deadline for calls that have none.
#pragma once

#include <functional>

#include "base/units.hpp"

namespace muster::detail {

/// Runs `call` on a thread of its own and waits for it for at most `deadline` (0: on this thread, without end). True if it came
/// back; what it threw is thrown here. False if it did not: the thread then stays in it until the process ends, so `call` must
/// own whatever it uses, and the library that it is in must not be called any more.
bool came_back(duration deadline, std::function<void()> call);

}  // namespace muster::detail
