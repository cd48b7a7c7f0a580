#include "launch/hardware/topology.hpp"

namespace muster {

cpuset topology::allowed() const {
    cpuset all;
    for (auto const& c : cores) all.add(c.cpus);
    return all;
}

}  // namespace muster
