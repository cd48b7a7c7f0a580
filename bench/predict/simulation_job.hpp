// The job that the simulator gets, and the times that it answers. Both travel as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/predict/platform_model.hpp"

namespace muster {

/// One number of ranks. Allreduces of `bytes`, one after the other, or steps of training where `tensors` are given.
struct simulation_job {
    platform_model platform;
    int ranks = 1;
    std::vector<std::size_t> bytes;    ///< of f32
    std::vector<std::size_t> tensors;  ///< elements of each gradient, in the order in which the backward pass completes them
    std::size_t bucket_bytes = std::size_t{1} << 20;
    double forward_s = 0, backward_s = 0;  ///< compute of a step, injected
    double input_s = 0;                    ///< waiting for the loader before a step, injected
    int steps = 2;                         ///< the last one is told
    int ring_rounds = 16;                  ///< of each pass of a ring at most: of more, one stands for several
    int slices = 100;                      ///< of the backward pass: communication moves on between them
    bool operator==(simulation_job const&) const = default;
};

struct simulated_allreduce {
    std::size_t bytes = 0;
    double seconds = 0;  ///< of the slowest rank
    bool operator==(simulated_allreduce const&) const = default;
};

struct simulation_result {
    int ranks = 1;
    std::vector<simulated_allreduce> allreduces;
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
