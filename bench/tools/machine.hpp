// Facts about the machine: what the system reports of processor, memory, system and load.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/cpuset.hpp"

namespace muster {

struct machine_facts {
    std::string host;
    std::string processor;  ///< the model's name
    int cores = 1;          ///< that this process may run on
    double clock_mhz = 0;   ///< of now; 0 if the system does not report it
    std::string governor;   ///< the frequency governor; "" if it is not visible
    std::uint64_t memory_bytes = 0;
    std::string system;    ///< "Debian GNU/Linux 12 (bookworm)"
    std::string kernel;    ///< "Linux 6.1.0-18-amd64 x86_64"
    std::string compiler;  ///< of this program
    bool virtualised = false;
    std::string gpus;  ///< "none" if the ranks have no GPUs
    bool operator==(machine_facts const&) const = default;
};

/// Reads /proc, /sys and /etc; what cannot be read stays empty.
machine_facts describe_machine();

/// Returns the object "context" of files of results, in the same words in each of them. Pure.
nlohmann::ordered_json machine_json(machine_facts const& machine);

/// Returns the one-minute load average; -1 if the system does not report it.
double load_average();

/// Returns the CPUs that this process may run on; empty if the system does not report them.
cpuset allowed_cpus();

/// Returns the present time as "2026-01-31T12:34:56Z".
std::string utc_now();

}  // namespace muster
