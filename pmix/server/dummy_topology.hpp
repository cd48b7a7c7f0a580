// A topology that stands for "some machine": satisfies the PMIx library if it never looks up anything in it. Internal.
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

/// Takes 0.1 ms. Throws library_error.
unique_topology make_dummy_topology();

}  // namespace muster::pmix
