// The small topology given to the PMIx library: loads in a short time. Internal.
#pragma once

#include <hwloc.h>

#include "base/unique_handle.hpp"

namespace muster::pmix {

struct topology_traits {
    using type = hwloc_topology_t;
    static type null() noexcept { return nullptr; }
    static void close(type handle) noexcept { hwloc_topology_destroy(handle); }
};
using unique_topology = unique_handle<topology_traits>;

/// This machine's processors, caches and memory, without devices and without hwloc's plugins, whose loading costs more than all
/// the rest (3.7 against 0.9 ms). Throws library_error.
unique_topology load_small_topology();

/// One that only says "some machine" (0.1 ms): enough where no rank is bound, so that nothing is ever looked up in it.
unique_topology make_dummy_topology();

}  // namespace muster::pmix
