#include "launch/run/child_rank.hpp"

#include "launch/ranks/rank_name.hpp"

namespace muster {

std::string name_of(child_rank const& rank) {
    auto const& gpu = rank.place.device;
    return name_of_rank(rank.who.rank, rank.who.host, gpu ? gpu->index : -1, gpu ? gpu->uuid : "");
}

}  // namespace muster
