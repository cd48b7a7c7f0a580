// The job that the simulator gets, and the times that it answers. Both travel as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/predict/platform_model.hpp"

namespace muster {

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
