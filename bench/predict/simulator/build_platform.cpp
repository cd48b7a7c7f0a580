#include "bench/predict/simulator/simulator.hpp"

#include <fmt/format.h>

#include <simgrid/forward.h>  // version.h of SimGrid 3 does not compile without it
#include <simgrid/version.h>
#include <algorithm>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace muster {

namespace {

namespace s4u = simgrid::s4u;

// SimGrid's calls that make a platform, as SimGrid 4 names them; before, they had other names, and some other arguments.
using simgrid::kernel::routing::NetPoint;
using simgrid::s4u::Host;
using simgrid::s4u::Link;
using simgrid::s4u::NetZone;
using way = std::vector<simgrid::s4u::LinkInRoute>;

#if SIMGRID_VERSION >= 40000

NetZone* star_zone(simgrid::s4u::Engine& engine, std::string const& name) {
    return engine.get_netzone_root()->add_netzone_star(name);
}
NetZone* full_zone(NetZone* parent, std::string const& name) {
    return parent->add_netzone_full(name);
}
Host* add_host(NetZone* zone, std::string const& name, double flops) {
    return zone->add_host(name, flops)->seal();
}
Link* add_link(NetZone* zone, std::string const& name, double bytes_per_s, double latency_s) {
    return zone->add_link(name, bytes_per_s)->set_latency(latency_s)->seal();
}
NetPoint* add_router(NetZone* zone, std::string const& name) {
    return zone->add_router(name);
}
void add_route(NetZone* zone, NetPoint* from, NetPoint* to, way const& links) {
    zone->add_route(from, to, links, false);
}
void choose_gateway(NetZone* zone, NetPoint* gateway) {
    zone->set_gateway(gateway);
}
/// Between a sealed zone, left and entered by its gateway, and the middle of the star around it.
void join(NetZone* star, NetZone* zone, NetPoint*, Link* out, Link* in) {
    star->add_route(zone, nullptr, way{simgrid::s4u::LinkInRoute(out)}, false);
    star->add_route(nullptr, zone, way{simgrid::s4u::LinkInRoute(in)}, false);
}

#else

/// Without a parent it is the root.
NetZone* star_zone(simgrid::s4u::Engine&, std::string const& name) {
    return simgrid::s4u::create_star_zone(name);
}
NetZone* full_zone(NetZone* parent, std::string const& name) {
    return simgrid::s4u::create_full_zone(name)->set_parent(parent);
}
Host* add_host(NetZone* zone, std::string const& name, double flops) {
    return zone->create_host(name, flops)->seal();
}
Link* add_link(NetZone* zone, std::string const& name, double bytes_per_s, double latency_s) {
    return zone->create_link(name, bytes_per_s)->set_latency(latency_s)->seal();
}
NetPoint* add_router(NetZone* zone, std::string const& name) {
    return zone->create_router(name);
}
void add_route(NetZone* zone, NetPoint* from, NetPoint* to, way const& links) {
    zone->add_route(from, to, nullptr, nullptr, links, false);
}
void choose_gateway(NetZone*, NetPoint*) {}  // a route names it
void join(NetZone* star, NetZone* zone, NetPoint* gateway, Link* out, Link* in) {
    star->add_route(zone->get_netpoint(), nullptr, gateway, nullptr, way{simgrid::s4u::LinkInRoute(out)}, false);
    star->add_route(nullptr, zone->get_netpoint(), nullptr, gateway, way{simgrid::s4u::LinkInRoute(in)}, false);
}

#endif

constexpr double host_flops = 1e9;  // compute is injected as time

/// Each node is a zone that holds the route of every two of its ranks, and of each rank to its gateway; above them a star joins the
/// gateways. So a route is found in tables of a node's size: one graph of all ranks took longer than all else from 100 ranks on.
class builder {
  public:
    builder(s4u::Engine& engine, platform_model const& model) : model_(model), cluster_(star_zone(engine, "cluster")) {}

    std::vector<s4u::Host*> build(int ranks) {
        int const nodes = (ranks + model_.ranks_a_node - 1) / model_.ranks_a_node;
        std::vector<s4u::Host*> hosts;
        for (int node = 0; node < nodes; ++node) {
            auto* const zone = full_zone(cluster_, fmt::format("node{}", node));
            int const here = std::min(model_.ranks_a_node, ranks - node * model_.ranks_a_node);
            std::vector<s4u::Host*> mine;
            for (int local = 0; local < here; ++local)
                mine.push_back(add_host(zone, fmt::format("node{}-rank{}", node, local), host_flops));
            inside(zone, mine);
            auto* const gateway = add_router(zone, fmt::format("node{}-gateway", node));
            outside(zone, node, mine, gateway);
            choose_gateway(zone, gateway);  // SimGrid 4 takes it before the zone is sealed only
            zone->seal();
            connect(zone, node, gateway);
            hosts.insert(hosts.end(), mine.begin(), mine.end());
        }
        cluster_->seal();
        return hosts;
    }

  private:
    struct cable {
        s4u::Link *out, *in;
    };
    static cable lay(s4u::NetZone* zone, std::string const& name, double gbs, double latency_us) {
        auto const one = [&](char const* direction) { return add_link(zone, name + direction, gbs * 1e9, latency_us * 1e-6); };
        return {one("-up"), one("-down")};
    }

    void inside(s4u::NetZone* zone, std::vector<s4u::Host*> const& hosts) {
        std::vector<cable> ports;
        if (model_.port_gbs > 0)
            for (auto* host : hosts)
                ports.push_back(lay(zone, host->get_name() + "-port", model_.port_gbs, model_.local_latency_us / 2));
        for (std::size_t i = 0; i < hosts.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) {
                auto* const a = hosts[i]->get_netpoint();
                auto* const b = hosts[j]->get_netpoint();
                if (!ports.empty()) {
                    route(zone, a, b, {ports[i].out, ports[j].in});
                    route(zone, b, a, {ports[j].out, ports[i].in});
                    continue;
                }
                auto const pair =
                    lay(zone, hosts[i]->get_name() + "-" + hosts[j]->get_name(), model_.pair_gbs, model_.local_latency_us);
                route(zone, a, b, {pair.out});
                route(zone, b, a, {pair.in});
            }
    }

    void outside(s4u::NetZone* zone, int node, std::vector<s4u::Host*> const& hosts, NetPoint* gateway) {
        std::vector<cable> cards;
        for (int card = 0; card < model_.cards; ++card)
            cards.push_back(
                lay(zone, fmt::format("node{}-card{}-link", node, card), model_.card_gbs, model_.network_latency_us / 2));
        for (std::size_t local = 0; local < hosts.size(); ++local) {
            auto const& card = cards[local * cards.size() / static_cast<std::size_t>(model_.ranks_a_node)];
            double const rate = model_.pcie_gbs > 0 ? model_.pcie_gbs : unlimited_ / 1e9;
            auto const pcie = lay(zone, hosts[local]->get_name() + "-pcie", rate, 0);
            route(zone, hosts[local]->get_netpoint(), gateway, {pcie.out, card.out});
            route(zone, gateway, hosts[local]->get_netpoint(), {card.in, pcie.in});
        }
    }

    /// The network has no contention of its own.
    void connect(s4u::NetZone* zone, int node, NetPoint* gateway) {
        auto const both = lay(cluster_, fmt::format("node{}-network", node), unlimited_ / 1e9, 0);
        join(cluster_, zone, gateway, both.out, both.in);
    }

    static void route(s4u::NetZone* zone, NetPoint* from, NetPoint* to, std::vector<s4u::Link*> const& links) {
        way links_in_route;
        for (auto* link : links) links_in_route.emplace_back(link);
        add_route(zone, from, to, links_in_route);
    }

    platform_model const& model_;
    s4u::NetZone* cluster_;
    double unlimited_ = 1e18;
};

}  // namespace

std::vector<simgrid::s4u::Host*> build_platform(simgrid::s4u::Engine& engine, platform_model const& model, int ranks) {
    return builder(engine, model).build(ranks);
}

}  // namespace muster
