#include "bench/tools/machine_json.hpp"

#include <nlohmann/json.hpp>

namespace muster {

nlohmann::ordered_json machine_json(machine_facts const& m) {
    return {{"host", m.host},
            {"processor", m.processor},
            {"cores", m.cores},
            {"clock_mhz", m.clock_mhz},
            {"governor", m.governor},
            {"memory_bytes", m.memory_bytes},
            {"system", m.system},
            {"kernel", m.kernel},
            {"compiler", m.compiler},
            {"virtualised", m.virtualised}};
}

}  // namespace muster
