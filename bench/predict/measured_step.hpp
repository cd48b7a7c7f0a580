// The steps of a measured study, split into what a simulation needs: compute and input.
#pragma once

#include <optional>
#include <vector>

#include "bench/study/study.hpp"

namespace muster {

/// Medians over the runs of one number of ranks.
struct measured_step {
    int ranks = 1;
    double step_s = 0;
    double compute_s = 0;  ///< the step without the two below
    double input_s = 0;    ///< waiting for the loader
    double exposed_s = 0;  ///< waiting for gradients
    bool oversubscribed = false;
    bool operator==(measured_step const&) const = default;
};

/// Of every number of ranks whose runs ended well, in order: train_s (where nobody told it the judged time, or wall_s of a rate) over
/// the number of steps, which is the metric "steps", or `steps` where it is given; loader_wait_s and allreduce_wait_s, where told, are
/// input and waiting. Throws errc::invalid_data naming `origin`, also where the study is itself simulated. Pure.
std::vector<measured_step> steps_of_study(study const& results, std::optional<double> steps, std::string const& origin);

}  // namespace muster
