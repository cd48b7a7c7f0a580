// The guardian: the small parent of the launcher, which ends every process that is left when the launcher is gone.
#pragma once

#include <functional>
#include <string>

#include "base/units.hpp"

namespace muster {

/// Forks. The child runs `launcher(session_dir)` and exits with what it returns. The parent, a subreaper, waits, passes signals
/// on, and when the child is gone ends every process that is left, removes the session folder and returns the child's exit code
/// (128+n if signal n killed it). A child that has not taken a request to end (SIGTERM, SIGINT …) within `grace` and five seconds
/// stands still: it is killed, everything with it, and the code is 128 and that signal. If the parent itself is killed the child
/// notices (`guardian_fd`). Call from main before any thread is started. Throws errc::system if it cannot fork.
int run_guarded(duration grace, std::function<int(std::string const& session_dir, int guardian_fd)> const& launcher);

}  // namespace muster
