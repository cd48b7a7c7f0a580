// A simulated study: numbers of ranks on one platform, their times, and what they were held against.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/simulate/published_fit.hpp"
#include "bench/simulate/simulation_job.hpp"

namespace muster {

/// What is simulated at each number of ranks.
struct simulation_plan {
    simulation_job job;      ///< of any number of ranks
    std::string network;     ///< empty: allreduces alone
    bool published = false;  ///< compute, input and constants come from the fit of the published table
    std::optional<published_fit> fit;
    known_seconds known_s;  ///< of the table's points: communication as it was simulated, and published_wait_s()
    std::vector<int> ranks;
};

struct simulated_study {
    simulation_plan plan;
    std::vector<simulation_result> results;
};

/// The job of one number of ranks. Under the published protocol a step's compute and input is fast_s or slow_s a step, as the fit
/// has them. Pure.
simulation_job job_of(simulation_plan const& plan, int ranks);

/// Runs the simulator once for each. Where there is a fit, the table's points are simulated first as they were run, and what they
/// took beside their compute is known to the fit.
simulated_study run_study(simulation_plan plan, environment const& variables);

/// Bus bandwidth of an allreduce, as nccl-tests has it.
double busbw_gbs(double bytes, double seconds, int ranks) noexcept;

/// Seconds of the whole run of the published table: simulated steps, and, under its protocol, the fitted constants.
double seconds_of_run(simulated_study const& study, simulation_result const& at);

std::string table_of(simulated_study const& study);
/// Schema muster.simulation/1; "simulated": true, in every result too; what was fitted and what was predicted apart.
nlohmann::json to_json(simulated_study const& study);

}  // namespace muster
