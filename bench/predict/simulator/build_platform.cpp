#include "bench/predict/simulator/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/predict/simulator/simgrid_platform.hpp"

namespace muster {

namespace {

namespace s4u = simgrid::s4u;
namespace platform = simgrid_platform;
using platform::NetPoint;

constexpr double host_flops = 1e9;  // compute is injected as time

/// Each node is a zone that holds the route of every two of its ranks, and of each rank to its gateway; above them a star joins the
/// gateways. So a route is found in tables of a node's size: one graph of all ranks took longer than all else from 100 ranks on.
class builder {
  public:
    builder(s4u::Engine& engine, platform_model const& model) : model_(model), cluster_(platform::star_zone(engine, "cluster")) {}

    std::vector<s4u::Host*> build(int ranks) {
        int const nodes = (ranks + model_.ranks_a_node - 1) / model_.ranks_a_node;
        std::vector<s4u::Host*> hosts;
        for (int node = 0; node < nodes; ++node) {
            auto* const zone = platform::full_zone(cluster_, fmt::format("node{}", node));
            int const here = std::min(model_.ranks_a_node, ranks - node * model_.ranks_a_node);
            std::vector<s4u::Host*> mine;
            for (int local = 0; local < here; ++local)
                mine.push_back(platform::add_host(zone, fmt::format("node{}-rank{}", node, local), host_flops));
            inside(zone, mine);
            auto* const gateway = platform::add_router(zone, fmt::format("node{}-gateway", node));
            outside(zone, node, mine, gateway);
            zone->seal();
            join(zone, node, gateway);
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
        auto const one = [&](char const* way) { return platform::add_link(zone, name + way, gbs * 1e9, latency_us * 1e-6); };
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
    void join(s4u::NetZone* zone, int node, NetPoint* gateway) {
        auto const both = lay(cluster_, fmt::format("node{}-network", node), unlimited_ / 1e9, 0);
        platform::join(cluster_, zone, gateway, both.out, both.in);
    }

    static void route(s4u::NetZone* zone, NetPoint* from, NetPoint* to, std::vector<s4u::Link*> const& links) {
        platform::way way;
        for (auto* link : links) way.emplace_back(link);
        platform::add_route(zone, from, to, way);
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
