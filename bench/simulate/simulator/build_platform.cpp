#include "bench/simulate/simulator/build_platform.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

namespace {

namespace s4u = simgrid::s4u;
using simgrid::kernel::routing::NetPoint;

constexpr double host_flops = 1e9;  // compute is injected as time

class builder {
  public:
    explicit builder(platform_model const& model) : model_(model), zone_(s4u::create_dijkstra_zone("cluster", true)) {}

    std::vector<s4u::Host*> build(int ranks) {
        int const nodes = (ranks + model_.ranks_a_node - 1) / model_.ranks_a_node;
        auto* const network = zone_->create_router("network");
        std::vector<s4u::Host*> hosts;
        for (int node = 0; node < nodes; ++node) {
            int const here = std::min(model_.ranks_a_node, ranks - node * model_.ranks_a_node);
            std::vector<s4u::Host*> mine;
            for (int local = 0; local < here; ++local)
                mine.push_back(zone_->create_host(fmt::format("node{}-rank{}", node, local), host_flops)->seal());
            inside(node, mine);
            if (nodes > 1) outside(node, mine, network);
            hosts.insert(hosts.end(), mine.begin(), mine.end());
        }
        zone_->seal();
        return hosts;
    }

  private:
    void edge(NetPoint* from, NetPoint* to, std::string const& name, double gbs, double latency_us) {
        auto* const there = zone_->create_link(name + "-up", gbs * 1e9)->set_latency(latency_us * 1e-6)->seal();
        auto* const back = zone_->create_link(name + "-down", gbs * 1e9)->set_latency(latency_us * 1e-6)->seal();
        zone_->add_route(from, to, nullptr, nullptr, {s4u::LinkInRoute(there)}, false);
        zone_->add_route(to, from, nullptr, nullptr, {s4u::LinkInRoute(back)}, false);
    }

    void inside(int node, std::vector<s4u::Host*> const& hosts) {
        if (model_.port_gbs > 0) {
            auto* const center = zone_->create_router(fmt::format("node{}-switch", node));
            for (auto* host : hosts)
                edge(host->get_netpoint(), center, host->get_name() + "-port", model_.port_gbs, model_.local_latency_us / 2);
            return;
        }
        for (std::size_t i = 0; i < hosts.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                edge(hosts[i]->get_netpoint(), hosts[j]->get_netpoint(), hosts[i]->get_name() + "-" + hosts[j]->get_name(),
                     model_.pair_gbs, model_.local_latency_us);
    }

    void outside(int node, std::vector<s4u::Host*> const& hosts, NetPoint* network) {
        std::vector<NetPoint*> cards;
        for (int card = 0; card < model_.cards; ++card) {
            auto const name = fmt::format("node{}-card{}", node, card);
            cards.push_back(zone_->create_router(name));
            edge(cards.back(), network, name + "-link", model_.card_gbs, model_.network_latency_us / 2);
        }
        for (std::size_t local = 0; local < hosts.size(); ++local) {
            auto* const card = cards[local * cards.size() / static_cast<std::size_t>(model_.ranks_a_node)];
            double const rate = model_.pcie_gbs > 0 ? model_.pcie_gbs : 1e6;
            edge(hosts[local]->get_netpoint(), card, hosts[local]->get_name() + "-pcie", rate, 0);
        }
    }

    platform_model const& model_;
    s4u::NetZone* zone_;
};

}  // namespace

std::vector<simgrid::s4u::Host*> build_platform(platform_model const& model, int ranks) {
    return builder(model).build(ranks);
}

}  // namespace muster
