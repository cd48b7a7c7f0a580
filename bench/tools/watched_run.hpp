// A watched run: starts a command, reads its output as it comes, and ends it at a deadline or when this program is to stop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"

namespace muster {

/// While one lives, SIGINT, SIGTERM and SIGHUP do not end this process but can be read; they are never lost. In the main thread,
/// before others are started.
class stop_signals {
  public:
    stop_signals();
    ~stop_signals();
    stop_signals(stop_signals const&) = delete;
    stop_signals& operator=(stop_signals const&) = delete;

    int fd() const noexcept { return fd_; }
    /// The signal that came first, as far as one came; does not wait.
    std::optional<int> came();

  private:
    int fd_ = -1;
    std::optional<int> first_;
};

struct watched_result {
    int exit_code = 0;  ///< 128+n for signal n
    bool killed_at_limit = false;
    std::optional<int> stopped;  ///< by this signal, which was handed on
    duration wall{0};
};

/// Starts `command` (found along PATH) in a process group of its own with an empty standard input; standard output and error come
/// as one, piece by piece, to `output`. A signal of `signals` is handed on as SIGINT or SIGTERM; a second one, or `patience` after
/// the first, kills the group, as `limit` does (0: none). Throws program_error, errc::system. From the main thread.
watched_result run_watched(std::vector<std::string> const& command, environment const& variables, stop_signals& signals,
                           duration limit, std::function<void(std::string_view)> const& output,
                           duration patience = std::chrono::seconds(20));

}  // namespace muster
