// The results of a comparison of collectives: prints them in nccl-tests' columns and writes them as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "bench/collectives/collectives_case.hpp"
#include "bench/collectives/collectives_values.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

/// The ranks must answer a measurement's order in this time.
inline constexpr duration order_deadline{120};

/// The place and time of a measurement.
struct measured_place {
    std::string created, command;
    machine_facts machine;           ///< of this node, or of rank 0's
    double load = 0;                 ///< before it
    std::vector<std::string> hosts;  ///< of each rank
};
/// Returns the number of nodes.
std::size_t host_count(measured_place const& at);
/// Returns the head of the results of every measurement of collectives.
nlohmann::ordered_json head_json(std::string_view schema, measured_place const& at);

/// GB/s of 1e9 bytes; 0 where no time passed.
double bandwidth_gbs(std::size_t bytes, double us);
/// "12%": smallest to largest, of the median.
std::string spread_text(summary const& of);

/// Samples in one place: microseconds for each call.
struct place_samples {
    std::vector<double> us;              ///< the greatest of all ranks; empty where the collective has no such place
    std::vector<double> min_us, avg_us;  ///< the least of all ranks, and their mean, if they are known
    double wrong = 0;                    ///< elements of the results
};

/// Samples of one way at one size, out of place and in place.
struct collectives_cell {
    std::string job;    ///< "shm", "openmpi", …
    std::size_t bytes;  ///< of the tensor, or of all tensors of a set; the larger of a rank's input and output
    std::size_t tensors = 1;
    int calls = 1;  ///< in a sample
    place_samples out{}, in{};
};

struct collectives_job_facts {
    std::string name, version;
    bool own = false;  ///< one of muster's backends
    memory_of_tensors memory = memory_of_tensors::plain;
    bool simulated = false;  ///< its ranks pretend to be on several nodes

    bool on_device() const noexcept { return memory == memory_of_tensors::device; }
};

/// The results of one run of the benchmark for one collective on one number of ranks.
struct collectives_results : measured_place {
    collective_case of;
    int ranks = 1;
    std::string gradients;  ///< the set's name and source; "" for sizes
    std::vector<collectives_job_facts> jobs;
    std::vector<std::string> notes;  ///< who was left out, and why
    double memcpy_gbs = 0;           ///< bytes copied a second, all ranks' cores together
    double triad_gbs = 0;            ///< STREAM triad, 3 arrays counted, all together
    std::vector<collectives_cell> cells;
};

/// The least microseconds that it can take to move what must be moved (bound_factor) at the triad's bandwidth.
double bound_us(collective::kind what, std::size_t bytes, int ranks, double triad_gbs) noexcept;

/// Compares muster's `own` backend with the fastest peer whose tensors are on the same side, host or device, by medians; out of
/// place where the collective is made so.
struct comparison {
    std::size_t bytes = 0;
    double own_us = 0, best_us = 0;
    std::string best;
    median_ratio advantage{};  ///< best_us / own_us
};
std::vector<comparison> compare_with_peers(collectives_results const& results, std::string const& own);
/// Geometric mean of best_us / own_us; 0 if there is nothing to compare. A comparison within its spread counts as 1.
double mean_advantage(std::vector<comparison> const& all);

/// No element was wrong.
bool all_right(collectives_results const& results);
/// Text for a terminal.
std::string describe(collectives_results const& results);
/// A line of CSV behind csv_head(); an empty time is not known.
struct csv_row {
    std::string what, place;
    int ranks = 1;
    std::size_t hosts = 1;
    std::string backend, type, redop;
    std::size_t bytes = 0;
    std::optional<double> least_us{}, mean_us{};
    double most_us = 0, algbw_gbs = 0, busbw_gbs = 0, wrong = 0;
};
std::string csv_head();
std::string csv_line(csv_row const& row);
/// A line for each size, way and place; medians of the samples.
std::string to_csv(collectives_results const& results);
/// Schema "muster.collectives/1".
nlohmann::ordered_json to_json(collectives_results const& results);

}  // namespace muster
