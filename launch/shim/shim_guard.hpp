// The guard of a rank shim: the small process that the engine knows, in front of the shim that holds the rank.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace muster {

/// The processes that started a shim.
struct shim_parents {
    pid_t daemon = 0;         ///< the engine's
    std::string daemon_name;  ///< orted, pmi_proxy …
    pid_t guard = 0;          ///< the shim's parent, whose parent the daemon is; 0: the daemon is the shim's own
};

/// Returns those of this process, if no guard is in front of it.
shim_parents own_parents();

/// Forks. The child runs `shim` in its own session and exits with what it returns: engines end what they have started by SIGKILL,
/// to the process, its group or its session, and a scheduler may do the same to the session, while the shim must live to end what
/// its rank has started in other sessions. The parent passes signals on to the child, of which SIGHUP also tells that the daemon
/// is gone; it ends what is left if the child was killed, and returns the child's exit code (128+n if signal n killed it). That the
/// parent is gone the child sees itself. Call before any thread is started. Throws errc::system if it cannot fork.
int run_behind_guard(std::function<int(shim_parents const&)> const& shim);

}  // namespace muster
