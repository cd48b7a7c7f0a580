// The guardian is the small parent of the launcher: it ends every process that is left when the launcher is gone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "launch/settings/part_functions.hpp"

namespace muster {

/// Holds what a launcher is started with.
struct launcher_start {
    std::string session_dir;
    int guardian_fd = -1;           ///< hangs up when the guardian dies
    std::string life;               ///< what the previous launcher has left for this one (leave_next); empty: this is the first
    int next_fd = -1;               ///< for leave_next
    state_keeping* kept = nullptr;  ///< holds the states that ranks keep (--keep-state) until the last launcher ends; or null
};

/// Orders another launcher, which starts with `life` after this one has ended and `delay` has passed. Throws errc::system.
void leave_next(int next_fd, duration delay, std::string const& life);

/// Forks. The child runs `launcher` and exits with what it returns. The parent, a subreaper, waits and passes signals on; after
/// the child's end it ends every process that is left and removes the session folder. It then starts the launcher that the child
/// has ordered, if nobody has asked the run to end, or returns the child's exit code (128+n if signal n killed it). A child
/// stands still if it does not take a request to end (SIGTERM, SIGINT …) within `grace` and five seconds, or a second one within
/// one second: the parent kills it and everything below it, and the code is 128 and that signal. It does the same with a child
/// that still runs long after `timeout` (--timeout). It leaves behind what even SIGKILL does not end. If the parent itself is
/// killed, the child notices (`guardian_fd`). Each launcher gets a session folder in one of `session_places`, and `kept`, whose
/// leader outlives it. Call this from main before any thread starts. Throws errc::system if it cannot fork.
int run_guarded(duration grace, std::vector<std::string> const& session_places,
                std::function<int(launcher_start const&)> const& launcher, state_keeping* kept = nullptr,
                std::optional<duration> timeout = {});

}  // namespace muster
