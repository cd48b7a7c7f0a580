// The machine in files of results: describes it in the same words in each of them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bench/tools/machine.hpp"

namespace muster {

/// The object "context": host, processor, cores, clock, governor, memory, system, kernel, compiler, whether virtual. Pure.
nlohmann::ordered_json machine_json(machine_facts const& machine);

}  // namespace muster
