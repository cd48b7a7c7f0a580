// The step of a measured study, split into what a simulation needs: compute and input.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace muster {

/// Means over the epochs of the run that came out with the median step.
struct measured_step {
    int ranks = 1;  ///< the fewest that the study has
    double step_s = 0;
    double compute_s = 0;  ///< the step without the two below
    double input_s = 0;    ///< waiting for the loader
    double exposed_s = 0;  ///< waiting for gradients
};

/// Of results of `muster-bench scale` with its own network. Throws errc::invalid_data naming `origin` and the place, also where the
/// study is itself simulated.
measured_step step_of_study(nlohmann::json const& document, std::string const& origin);

}  // namespace muster
