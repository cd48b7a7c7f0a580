// Asks of another process whether it has a handler for a signal, which would end it otherwise.
#pragma once

#include <sys/types.h>

namespace muster {

/// Whether the process has a handler for the signal (1 to 64): SigCgt of /proc/PID/status, proc(5). One that ignores or blocks it has
/// none. False if there is no such process, or it may not be read. Any thread.
bool catches_signal(pid_t pid, int signal_number);

}  // namespace muster
