// Facts about the machine: reads what the system tells of processor, memory, system and load.
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
    double clock_mhz = 0;   ///< as the system says now; 0 if it does not
    std::string governor;   ///< the frequency governor; "" if there is none to see
    std::uint64_t memory_bytes = 0;
    std::string system;    ///< "Debian GNU/Linux 12 (bookworm)"
    std::string kernel;    ///< "Linux 6.1.0-18-amd64 x86_64"
    std::string compiler;  ///< that built this program
    bool virtualised = false;
    std::string gpus;  ///< "none" where the ranks have none
    bool operator==(machine_facts const&) const = default;
};

/// Reads /proc, /sys and /etc; what cannot be read stays empty.
machine_facts describe_machine();

/// The object "context" of files of results, in the same words in each of them. Pure.
nlohmann::ordered_json machine_json(machine_facts const& machine);

/// The one-minute load average; -1 if the system does not tell.
double load_average();

/// The CPUs that this process may run on; empty if the system does not tell.
cpuset allowed_cpus();

/// Now, as "2026-01-31T12:34:56Z".
std::string utc_now();

}  // namespace muster
