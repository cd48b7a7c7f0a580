// The umask and the limits of this process, read for ranks on other nodes.
#pragma once

#include <vector>

#include "base/process/process.hpp"

namespace muster {

/// The soft limits of this process, as setrlimit counts them, and its umask. Not thread-safe: to be read, the umask is set for a
/// moment.
std::vector<soft_limit> read_own_limits();
int read_umask();

}  // namespace muster
