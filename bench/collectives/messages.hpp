// Messages between two ranks: measures latency and bandwidth, fits alpha and beta, and gives the results as text, CSV and JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/collectives/collectives_job.hpp"
#include "bench/collectives/collectives_table.hpp"

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

/// Returns nothing for fewer than three sizes, or if times do not grow with them. A latency below 0 counts as unknown.
std::optional<link_fit> fit_link(std::span<timed_size const> sizes);

/// One size of messages between two ranks; microseconds, a value a sample.
struct pair_size {
    std::size_t bytes = 0;
    int window = 1;  ///< messages on their way at a time in `one_way` and `both_ways`
    std::vector<double> latency_us, one_way_us, both_ways_us;
    double wrong = 0;  ///< bytes
};

/// Messages between two ranks by one of muster's backends.
struct messages_results : measured_place {
    std::string backend, version;
    int first = 0, second = 0;
    std::vector<pair_size> sizes;
    std::vector<std::string> notes;
};

/// One size between the two ranks that were chosen by the order "pair"; a sample's time is that of the slower of the two.
pair_size measure_messages(ordered_ranks& ranks, std::size_t bytes, int repeats);

/// "in node" or "between nodes".
std::string_view level_of(messages_results const& results);
/// Latency and rate of the messages, by their latencies (bandwidths have several messages on their way).
std::optional<link_fit> fit_of(messages_results const& results);

/// No byte was wrong.
bool all_right(messages_results const& results);
std::string describe(messages_results const& results);
/// Lines behind csv_head(): latency, bandwidth and bidirectional bandwidth; least, median, median.
std::string to_csv(messages_results const& results);
/// Schema "muster.messages/1", with every sample.
nlohmann::ordered_json to_json(messages_results const& results);

}  // namespace muster
