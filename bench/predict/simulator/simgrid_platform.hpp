// SimGrid's calls that make a platform, as SimGrid 4 names them; before, they had other names, and some other arguments.
#pragma once

#include <simgrid/forward.h>  // version.h of SimGrid 3 does not compile without it
#include <simgrid/version.h>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace muster::simgrid_platform {

using simgrid::kernel::routing::NetPoint;
using simgrid::s4u::Host;
using simgrid::s4u::Link;
using simgrid::s4u::NetZone;
using way = std::vector<simgrid::s4u::LinkInRoute>;

#if SIMGRID_VERSION >= 40000

inline NetZone* star_zone(simgrid::s4u::Engine& engine, std::string const& name) {
    return engine.get_netzone_root()->add_netzone_star(name);
}
inline NetZone* full_zone(NetZone* parent, std::string const& name) {
    return parent->add_netzone_full(name);
}
inline Host* add_host(NetZone* zone, std::string const& name, double flops) {
    return zone->add_host(name, flops)->seal();
}
inline Link* add_link(NetZone* zone, std::string const& name, double bytes_per_s, double latency_s) {
    return zone->add_link(name, bytes_per_s)->set_latency(latency_s)->seal();
}
inline NetPoint* add_router(NetZone* zone, std::string const& name) {
    return zone->add_router(name);
}
inline void add_route(NetZone* zone, NetPoint* from, NetPoint* to, way const& links) {
    zone->add_route(from, to, links, false);
}
/// Between a sealed zone, left and entered by its gateway, and the middle of the star around it.
inline void join(NetZone* star, NetZone* zone, NetPoint* gateway, Link* out, Link* in) {
    zone->set_gateway(gateway);
    star->add_route(zone, nullptr, way{simgrid::s4u::LinkInRoute(out)}, false);
    star->add_route(nullptr, zone, way{simgrid::s4u::LinkInRoute(in)}, false);
}

#else

/// Without a parent it is the root.
inline NetZone* star_zone(simgrid::s4u::Engine&, std::string const& name) {
    return simgrid::s4u::create_star_zone(name);
}
inline NetZone* full_zone(NetZone* parent, std::string const& name) {
    return simgrid::s4u::create_full_zone(name)->set_parent(parent);
}
inline Host* add_host(NetZone* zone, std::string const& name, double flops) {
    return zone->create_host(name, flops)->seal();
}
inline Link* add_link(NetZone* zone, std::string const& name, double bytes_per_s, double latency_s) {
    return zone->create_link(name, bytes_per_s)->set_latency(latency_s)->seal();
}
inline NetPoint* add_router(NetZone* zone, std::string const& name) {
    return zone->create_router(name);
}
inline void add_route(NetZone* zone, NetPoint* from, NetPoint* to, way const& links) {
    zone->add_route(from, to, nullptr, nullptr, links, false);
}
inline void join(NetZone* star, NetZone* zone, NetPoint* gateway, Link* out, Link* in) {
    star->add_route(zone->get_netpoint(), nullptr, gateway, nullptr, way{simgrid::s4u::LinkInRoute(out)}, false);
    star->add_route(nullptr, zone->get_netpoint(), nullptr, gateway, way{simgrid::s4u::LinkInRoute(in)}, false);
}

#endif

}  // namespace muster::simgrid_platform
