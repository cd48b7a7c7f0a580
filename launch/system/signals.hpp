// Takes the signals that a launcher handles through a descriptor.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace muster {

/// Returns "TERM" for SIGTERM; null for a real-time signal and any other number. The C library has the names only since glibc
/// 2.32.
char const* signal_name(int signal_number) noexcept;

/// Returns whether the parent of this process made it ignore the signal: nohup does so with SIGHUP, a script's `&` with SIGINT
/// and SIGQUIT. Such a signal must stay ignored, although a signalfd would get it.
bool is_ignored(int signal_number) noexcept;

/// Returns the signals that the launcher of a run handles: those that end the run, those that it passes on to ranks, and SIGCHLD;
/// without ignored ones.
std::vector<int> launcher_signals();

/// Returns whether a launcher's signal ends the run.
bool ends_the_run(int signal_number) noexcept;

/// Returns whether the signal is only a notice to a program (SIGUSR1, SIGUSR2), and would end one without a handler for it.
bool is_notice(int signal_number) noexcept;

/// One request may arrive more than once: at the whole process group and through the guardian, or from a scheduler at every
/// process of the job and through the script's own trap. A repetition within 0.2 s is the same request.
class signal_requests {
  public:
    bool is_repeat(int signal_number);
    /// Answering the request took long: what arrived meanwhile, or arrives within 0.2 s from now, is the same request.
    void extend(int signal_number) { last_[signal_number] = std::chrono::steady_clock::now(); }
    /// Makes this signal no new request from now on: the scheduler sends it again and again for the same reason.
    void take_as_known(int signal_number) { known_ = signal_number; }

  private:
    std::map<int, std::chrono::steady_clock::time_point> last_;
    int known_ = 0;
};

/// Blocks them in this thread: from now on they arrive only through the returned descriptor (a signalfd, close-on-exec,
/// non-blocking), which only this thread may read; a thread that has not blocked them, such as a driver library's, passes them on
/// to it. Executed programs get them as usual again. The error names `whom`. Throws errc::system.
unique_fd take_signals(std::span<int const> numbers, std::string_view whom);

/// Returns the first signal in such a descriptor that ends the run, if there is one; drops those before it.
std::optional<int> take_request_to_end(int signals_fd);

// Describes how a process ended, from the status of waitpid.

/// Returns "exited with code 3", "was killed by signal 9 (SIGKILL)".
std::string describe_end(int wait_status);

/// Returns the exit code that a shell would give: the code, or 128 + the signal.
int shell_code(int wait_status) noexcept;

}  // namespace muster
