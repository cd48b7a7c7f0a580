// Describes how a process ended, from the status of waitpid.
#pragma once

#include <string>

namespace muster {

/// "exited with code 3", "was killed by signal 9 (SIGKILL)".
std::string describe_end(int wait_status);

/// The exit code that a shell would give: the code, or 128 + the signal.
int shell_code(int wait_status) noexcept;

}  // namespace muster
