// The results of `muster-bench collectives-here`: times over the ranks of a job, as text, CSV and JSON. Pure.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/collectives/collectives_case.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/machine.hpp"

namespace muster {

struct timed_size {
    double bytes = 0, us = 0;
    bool operator==(timed_size const&) const = default;
};

/// us = alpha_us + bytes / gbs / 1000, least squares of the relative errors.
struct link_fit {
    double alpha_us = 0, gbs = 0;
    double relative_rms = 0;
    std::vector<double> left_out;  ///< of each size, the relative error of what the others' fit predicts
    double us(double bytes) const noexcept { return alpha_us + bytes / gbs / 1e3; }
};

/// Nothing of fewer than three sizes, or where times do not grow with them. A latency below 0 is none.
std::optional<link_fit> fit_link(std::span<timed_size const> sizes);

/// Microseconds of one call in one sample, over the ranks.
struct rank_times {
    double least = 0, mean = 0, most = 0;
    bool operator==(rank_times const&) const = default;
};
/// Throws errc::internal on no values.
rank_times over_ranks(std::span<double const> us);
/// The median of each over the samples.
rank_times medians(std::span<rank_times const> samples);

/// One size of a collective.
struct here_size {
    std::size_t bytes = 0;  ///< the larger of a rank's input and output, as nccl-tests counts
    int calls = 1;          ///< in a sample
    std::vector<rank_times> out_of_place, in_place;
    double wrong_out = 0, wrong_in = 0;  ///< elements, of all ranks and samples
};
struct here_table {
    collective_case of;
    std::vector<here_size> sizes;
};

/// One size of messages between two ranks; microseconds, a value a sample.
struct pair_size {
    std::size_t bytes = 0;
    int window = 1;  ///< messages on their way at a time in `one_way` and `both_ways`
    std::vector<double> latency_us, one_way_us, both_ways_us;
    double wrong = 0;  ///< bytes
};

/// Messages between two ranks.
struct pair_table {
    int first = 0, second = 0;
    std::vector<pair_size> sizes;
};

struct here_results {
    std::string created, command, backend, why_backend, version;
    machine_facts machine;  ///< of rank 0's node
    double load = 0;
    std::vector<std::string> hosts;  ///< of each rank
    std::vector<here_table> tables;
    std::vector<pair_table> pairs;
    machine_load crowd;  ///< of rank 0's node
    std::vector<std::string> notes;
};

/// nccl-tests' last line: the mean of all sizes' bus bandwidths, GB/s of 1e9 bytes, in and out of place; 0 if there is none.
double average_busbw(here_table const& table, int ranks);

/// "in node" or "between nodes".
std::string_view level_of(here_results const& results, pair_table const& pair);
/// Latency and rate of the messages, by their latencies (bandwidths have several messages on their way).
std::optional<link_fit> fit_of(pair_table const& pair);

std::string describe(here_results const& results);
/// A line of names and one for each size of each collective, and of the pairs; times in microseconds, bandwidths in GB/s.
std::string to_csv(here_results const& results);
/// Schema "muster.collectives-here/1", with every sample.
nlohmann::ordered_json to_json(here_results const& results);
bool all_right(here_results const& results);

}  // namespace muster
