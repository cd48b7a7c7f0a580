// The simulation of ranks: the model of a machine, the job that the simulator gets, and the times that it answers. All travel as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace muster {

/// GB/s are 1e9 bytes a second, in each direction. A message between two ranks of a node goes through both ranks' ports of a
/// switch, or, where `port_gbs` is 0, over a link of its own for each two ranks. One between nodes goes over the rank's PCIe path,
/// its node's card (card r * cards / ranks for local rank r), a network without contention, and the same way in.
struct platform_model {
    std::string name;
    std::string description;
    int ranks_a_node = 1;
    double port_gbs = 0;
    double pair_gbs = 0;
    double local_latency_us = 0;    ///< one message within a node
    double pcie_gbs = 0;            ///< of each rank, towards the cards
    int cards = 1;                  ///< of each node
    double card_gbs = 0;            ///< of each card
    double network_latency_us = 0;  ///< one message between nodes
    double memory_gbs = 0;          ///< that a rank's reductions read and write at; 0: they take no time
    std::vector<std::string> sources{};
    bool operator==(platform_model const&) const = default;
};

/// What was published of a machine, to hold a simulation against: an allreduce's bus bandwidth.
struct published_rate {
    std::string platform;
    int ranks = 0;
    double busbw_gbs = 0;
    std::string source;
};

std::span<platform_model const> platform_table();
std::span<published_rate const> published_rates();

/// Throws errc::usage naming what there is.
platform_model const& platform_named(std::string const& name);

/// Two ranks or more, one on each node, over one link of this latency and rate; reductions take no time.
platform_model plain_link(double latency_us, double gbs);

nlohmann::json to_json(platform_model const& model);
/// Throws errc::invalid_data.
platform_model read_platform(nlohmann::json const& document);

/// Steps of training on so many ranks.
struct simulation_job {
    platform_model platform;
    int ranks = 1;
    std::vector<std::size_t> tensors;  ///< elements of each gradient, in the order in which the backward pass completes them
    std::size_t bucket_bytes = std::size_t{8} << 20;
    double forward_s = 0, backward_s = 0;  ///< compute of a step, injected
    double input_s = 0;                    ///< waiting for the loader before a step, injected
    bool operator==(simulation_job const&) const = default;
};

struct simulation_result {
    double step_s = 0;     ///< of the slowest rank
    double exposed_s = 0;  ///< of that, waiting for gradients after the backward pass
    std::string backend;
    bool operator==(simulation_result const&) const = default;
};

nlohmann::json to_json(simulation_job const& job);
nlohmann::json to_json(simulation_result const& result);  ///< has "simulated": true
/// Throw errc::invalid_data.
simulation_job read_job(nlohmann::json const& document);
simulation_result read_result(nlohmann::json const& document);

}  // namespace muster
