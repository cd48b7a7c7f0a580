// The step of a measured study, split into what a simulation needs: compute and input.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace muster {

/// Means over the epochs of the run that came out with the median step.
struct measured_step {
    int ranks = 1;
    double step_s = 0;
    double compute_s = 0;  ///< the step without the two below
    double input_s = 0;    ///< waiting for the loader
    double exposed_s = 0;  ///< waiting for gradients
};

/// Of results of `muster-bench scale` with another program, that makes so many `steps` in a run: the judged time over the steps (of a
/// rate, wall_s), of which loader_wait_s and allreduce_wait_s, where the program told them, are input and waiting. Throws
/// errc::invalid_data as below.
measured_step step_of_program(nlohmann::json const& document, std::string const& origin, double steps);

/// Every number of ranks of the built-in training, each the median step; in order of ranks. Throws as below.
std::vector<measured_step> steps_of_study(nlohmann::json const& document, std::string const& origin);

/// Of results of `muster-bench scale` with its own network. Throws errc::invalid_data naming `origin` and the place, also where the
/// study is itself simulated.
measured_step step_of_study(nlohmann::json const& document, std::string const& origin);

}  // namespace muster
