// A watched run: starts a command, reads its output as it arrives, and ends it at a deadline or when this program must stop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"

namespace muster {

/// While one lives, SIGINT, SIGTERM and SIGHUP do not end this process but can be read; they are never lost. Make it in the main
/// thread, before other threads start.
class stop_signals {
  public:
    stop_signals();
    ~stop_signals();
    stop_signals(stop_signals const&) = delete;
    stop_signals& operator=(stop_signals const&) = delete;

    int fd() const noexcept { return fd_; }
    /// Returns the signal that came first, if one came; does not wait.
    std::optional<int> came();

  private:
    int fd_ = -1;
    std::optional<int> first_;
};

struct watched_result {
    int exit_code = 0;  ///< 128+n for signal n
    bool killed_at_limit = false;
    std::optional<int> stopped;  ///< by this signal, which was passed on
    duration wall{0};
};

/// Starts `command` (found along PATH) in its own process group with an empty standard input; `output` gets standard output and
/// error together, piece by piece. A signal of `signals` is passed on as SIGINT or SIGTERM; a second one, or `patience` after the
/// first, kills the group, as `limit` does (0: none). Throws program_error, errc::system. From the main thread.
watched_result run_watched(std::vector<std::string> const& command, environment const& variables, stop_signals& signals,
                           duration limit, std::function<void(std::string_view)> const& output,
                           duration patience = std::chrono::seconds(20));

}  // namespace muster
