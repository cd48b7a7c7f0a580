// The signals that a launcher handles, taken through a descriptor.
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

/// "TERM" for SIGTERM; null for a real-time signal and what is no signal. The C library has the names since glibc 2.32 only.
char const* signal_name(int signal_number) noexcept;

/// Whether the parent of this process had the signal ignored: nohup SIGHUP, a script's `&` SIGINT and SIGQUIT. Such a signal
/// must stay ignored, although it would be delivered to a signalfd.
bool is_ignored(int signal_number) noexcept;

/// The signals that the launcher of a run handles: what ends the run, what it passes on to ranks, and SIGCHLD; without ignored ones.
std::vector<int> launcher_signals();

/// Of these, those that end the run.
bool ends_the_run(int signal_number) noexcept;

/// Whether the signal only tells a program something (SIGUSR1, SIGUSR2), and would end one that does not know it.
bool is_notice(int signal_number) noexcept;

/// One request may come more than once: to the whole process group and passed on by the guardian, or from a scheduler to every
/// process of the job and from the script's own trap. What comes again within 0.2 s is the same request.
class signal_requests {
  public:
    bool is_repeat(int signal_number);
    /// Answering the request took long: what has come meanwhile, and comes within 0.2 s from now, is the same request.
    void extend(int signal_number) { last_[signal_number] = std::chrono::steady_clock::now(); }
    /// From now on this signal is no new request: the scheduler sends it again and again for the same reason.
    void take_as_known(int signal_number) { known_ = signal_number; }

  private:
    std::map<int, std::chrono::steady_clock::time_point> last_;
    int known_ = 0;
};

/// Blocks them in this thread: from now on they come through the returned descriptor (a signalfd, close-on-exec, non-blocking)
/// only, which this thread alone may read; a thread that has not blocked them, as those of drivers' libraries, passes them on to it. Programs that are
/// executed have them as usual again. `whom` is named in the error. Throws errc::system.
unique_fd take_signals(std::span<int const> numbers, std::string_view whom);

/// The first signal waiting in such a descriptor that ends the run, if there is one; those before it are dropped.
std::optional<int> take_request_to_end(int signals_fd);

// Describes how a process ended, from the status of waitpid.

/// "exited with code 3", "was killed by signal 9 (SIGKILL)".
std::string describe_end(int wait_status);

/// The exit code that a shell would give: the code, or 128 + the signal.
int shell_code(int wait_status) noexcept;

}  // namespace muster
