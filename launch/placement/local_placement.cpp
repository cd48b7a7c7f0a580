#include "launch/placement/local_placement.hpp"

#include "launch/placement/bind_ranks.hpp"

namespace muster {

local_placement place_here(topology machine, allocation given, mapping map, placement_request const& wanted) {
    local_placement where{std::move(machine), std::move(given), std::move(map), {}};
    where.bindings = bind_ranks(where.machine, wanted, where.map.world_size());
    return where;
}

}  // namespace muster
