// Which signals a launcher minds, and how they come to it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace muster {

/// Whether whoever started this process wants the signal ignored: nohup SIGHUP, a script's `&` SIGINT and SIGQUIT. Such a signal
/// must stay ignored, although it would be delivered to a signalfd.
bool is_ignored(int signal_number) noexcept;

/// What the launcher of a run minds: what ends the run, what it passes on to ranks, and SIGCHLD; without what is ignored.
std::vector<int> launcher_signals();

/// Of these, those that end the run.
bool ends_the_run(int signal_number) noexcept;

/// Blocks them in this thread: from now on they come through the returned descriptor (a signalfd, close-on-exec, non-blocking)
/// only. `whom` is for the error's words. Throws errc::system.
unique_fd take_signals(std::span<int const> numbers, std::string_view whom);

}  // namespace muster
