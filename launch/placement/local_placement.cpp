#include "launch/placement/local_placement.hpp"

#include "launch/placement/bind_ranks.hpp"

namespace muster {

local_placement place_here(topology machine, allocation given, mapping map, placement_request const& wanted) {
    local_placement where{std::move(machine), std::move(given), std::move(map), {}};
    where.bindings = bind_ranks(where.machine, wanted, where.map.world_size());
    return where;
}

identity identity_of(local_placement const& where, int rank, std::string const& nspace) {
    int const size = where.map.world_size();
    return {nspace, rank, size, rank, size, 0, 1, where.machine.host, identity::source::muster};
}

}  // namespace muster
