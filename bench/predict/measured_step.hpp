// The steps of a measured study, split into what a simulation needs: compute and input.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/study/study.hpp"

namespace muster {

/// Medians over the runs of one number of ranks, and the spread of its compute.
struct measured_step {
    int ranks = 1;
    double step_s = 0;
    double compute_s = 0;                            ///< the step without the two below
    double input_s = 0;                              ///< waiting for the loader
    double exposed_s = 0;                            ///< waiting for gradients
    double least_compute_s = 0, most_compute_s = 0;  ///< of its runs
    int runs = 0;                                    ///< that these two are of
    bool input_told = false, exposed_told = false;   ///< else they are 0, and in compute
    bool oversubscribed = false;
    bool operator==(measured_step const&) const = default;
};

struct measured_steps {
    std::string from;                 ///< how a step's time follows from the study: "train_s / steps", "batch 32 / images_per_s"
    std::vector<measured_step> rows;  ///< by ranks
    bool given_steps = false;         ///< the number of steps was given, not printed
    bool over_steps = false;          ///< the number of steps counts: a time, or waiting, is that of all steps of a run
};

/// Of every number of ranks whose runs ended well and told a time of their steps, which is the first that there is of: the metric step_s
/// or step_ms; train_s, or the time that the study is judged by, over the number of steps (the metric "steps", or `steps` where it is given);
/// steps_per_s; a rate of samples, by its name or unit, where the study knows its batch. wall_s holds launching and start-up and is never taken.
/// loader_wait_s and allreduce_wait_s, where told, are input and waiting. Without any such time or number of steps: no rows if not
/// `needed`, else throws errc::invalid_data naming `origin`, also where the study is itself simulated. Pure.
measured_steps steps_of_study(study const& results, std::optional<double> steps, std::string const& origin, bool needed = true);

}  // namespace muster
