// The line of a metric prints a number of this program for muster-bench scale, which reads it.
#pragma once

#include <cstdio>
#include <string>

namespace muster {

/// Prints "muster-metric: NAME VALUE UNIT" on standard output and flushes it. `name` consists of letters, digits and "_.-/"; `unit`
/// is one word, or "". Call it on one rank, or on all if all ranks' values count (--take NAME=last,max). As thread safe as printf.
inline void metric(std::string const& name, double value, std::string const& unit = "") {
    std::printf("muster-metric: %s %.12g %s\n", name.c_str(), value, unit.c_str());
    std::fflush(stdout);
}

}  // namespace muster
