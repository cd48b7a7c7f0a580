// GPUs given on the command line, for a machine that is not this one (muster plan --topology FILE --gpus SPEC).
#pragma once

#include <string_view>

#include "launch/hardware/topology.hpp"

namespace muster {

/// `machine` with the GPUs of `spec` in place of its GPUs: "4", this number, whose place is unknown; "numa:3,2,1,0", one on each of
/// these NUMA nodes; "cpus:24-31,56-63/0-7,32-39", one next to each of these lists of hardware threads; "none". Pure. Throws
/// parse_error (errc::usage) with a caret, also for a NUMA node or CPUs that the machine has not.
topology with_gpus(topology machine, std::string_view spec);

}  // namespace muster
