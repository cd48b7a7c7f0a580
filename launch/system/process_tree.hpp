// Finds the descendants of this process and signals them.
#pragma once

#include <sys/types.h>

#include <vector>

namespace muster {

/// All living descendants of this process (children, their children, …), zombies left out. Needs only /proc.
std::vector<pid_t> descendants();

/// Sends the signal to each of them; returns how many there were.
int signal_descendants(int signal_number) noexcept;

}  // namespace muster
