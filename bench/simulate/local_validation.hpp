// The validation on this machine: simulated allreduces and steps beside measured ones, from messages between two ranks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/in_job/link_fit.hpp"
#include "bench/simulate/measured_step.hpp"
#include "bench/simulate/platform_model.hpp"

namespace muster {

/// What was measured: of two ranks of one node their messages and allreduces (muster-bench collectives-here), and steps of training.
struct local_measurements {
    int ranks = 2;                       ///< of the messages and allreduces
    std::vector<timed_size> messages;    ///< one way, the median
    std::vector<timed_size> allreduces;  ///< of the slowest rank, in place where there is such, the median
    std::vector<measured_step> steps;    ///< of several numbers of ranks, one among them
    std::vector<std::size_t> tensors;    ///< elements of the gradients
    std::size_t bucket_bytes = 64 << 10;
    int cores = 1;
    std::string host;
};
/// From the JSON of collectives-here and of scale. Throws errc::invalid_data.
local_measurements read_local_measurements(nlohmann::json const& collectives, std::string const& collectives_origin,
                                           nlohmann::json const& study, std::string const& study_origin);

struct predicted_value {
    std::string what;  ///< "allreduce of 64 KiB", "step, compute of 1 rank", "step, its own compute"
    int ranks = 2;
    int compute_from = 0;  ///< ranks of the runs whose compute and input the step was given; 0: it has none
    double measured_us = 0, simulated_us = 0;
    double error() const noexcept { return simulated_us / measured_us - 1; }
};

/// The one number that is fitted: how fast a rank adds what it has received. Messages are taken as they were measured.
struct addition_fit {
    double gbs = 0;  ///< read and written; 0: additions take no time that can be seen
    double relative_rms = 0;
    std::vector<double> left_out;  ///< of each allreduce, the relative error of what the others' fit predicts
};

/// An allreduce of which the simulation without additions says `without_us`, and `more_us` more for each ns that a byte of an addition takes.
struct explained_allreduce {
    double measured_us = 0, without_us = 0, more_us = 0;
    double us(double ns_a_byte) const noexcept { return without_us + more_us * ns_a_byte; }
};

/// Least squares of the relative errors. Pure.
addition_fit fit_additions(std::span<explained_allreduce const> all);

struct local_validation {
    local_measurements from;
    addition_fit fitted;
    platform_model platform;
    std::vector<predicted_value>
        predicted;  ///< an allreduce by what was fitted to those of other sizes, steps by what was fitted to all
};

/// Steps are predicted from the compute of the fewest ranks, and once more from their own, where only communication is predicted; ranks
/// that outnumber the cores take turns at them. Throws errc::invalid_data where there are fewer than two sizes of messages.
local_validation validate_here(local_measurements from, environment const& variables);

std::string table_of(local_validation const& all);
nlohmann::json to_json(local_validation const& all);

}  // namespace muster
