// The guardian: the small parent of the launcher, which ends every process that is left when the launcher is gone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "launch/keep/state_holder.hpp"

namespace muster {

/// What a launcher is started with.
struct launcher_start {
    std::string session_dir;
    int guardian_fd = -1;          ///< hangs up when the guardian dies
    std::string life;              ///< what the launcher before it has left for it (leave_next); empty: it is the first
    int next_fd = -1;              ///< for leave_next
    state_holder* kept = nullptr;  ///< of the states that ranks keep (--keep-state), to the end of the last launcher; null: none
};

/// Orders another launcher, which begins with `life` once this one has ended and `delay` has passed. Throws errc::system.
void leave_next(int next_fd, duration delay, std::string const& life);

/// Forks. The child runs `launcher` and exits with what it returns. The parent, a subreaper, waits, passes signals on, and when the
/// child is gone ends every process that is left and removes the session folder. It then begins the launcher that the child has ordered, if
/// nobody has asked the run to end, or returns the child's exit code (128+n if signal n killed it). A child that has not taken a request to end
/// (SIGTERM, SIGINT …) within `grace` and five seconds, or a second one within one, stands still: it is killed, everything with it, and the code is 128 and that signal. So is
/// one that is still there long after `timeout` (--timeout). What even SIGKILL does not end is left behind. If
/// the parent itself is killed the child notices (`guardian_fd`). Each launcher gets a session folder in one of `session_places`, and `kept`, whose leader outlives it. Call from main before any thread is started. Throws errc::system if
/// it cannot fork.
int run_guarded(duration grace, std::vector<std::string> const& session_places,
                std::function<int(launcher_start const&)> const& launcher, state_holder* kept = nullptr,
                std::optional<duration> timeout = {});

}  // namespace muster
