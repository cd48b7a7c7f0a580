// Progress on a terminal: shows the share of the bytes done.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace muster::stage {

/// A function to be told the bytes that this rank has done: it shows "WHAT 42 % (1.2 GiB)" on standard error, at most ten times a
/// second and only if that is a terminal and `show` is true; else it does nothing. The line is wiped when all `total` bytes are
/// done.
std::function<void(std::uint64_t)> progress(std::string what, std::uint64_t total, bool show);

}  // namespace muster::stage
