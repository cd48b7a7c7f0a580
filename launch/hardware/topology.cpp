#include "launch/hardware/topology.hpp"

#include <algorithm>
#include <tuple>

namespace muster {

void put_in_order(std::vector<core>& cores) {
    auto const place = [](core const& c) { return std::tuple(c.package, c.numa, c.cpus.cpus.front()); };
    std::sort(cores.begin(), cores.end(), [&](core const& a, core const& b) { return place(a) < place(b); });
}

cpuset topology::allowed() const {
    cpuset all;
    for (auto const& c : cores) all.add(c.cpus);
    return all;
}

}  // namespace muster
