// Tables of bus bandwidth: reads them from the results of muster-bench collectives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/tools/checked_json.hpp"

namespace muster {

/// Something that was recorded, in words.
struct report_fact {
    std::string what, value;
    bool operator==(report_fact const&) const = default;
};

/// busbw is bytes / time * factor, as nccl-tests has it, in GB/s of 1e9 bytes, out of place (in place where that alone was measured).
struct busbw_point {
    double bytes = 0, us = 0, busbw_gbs = 0, low = 0, high = 0;
    std::size_t samples = 0;
};

struct busbw_curve {
    std::string name;
    bool simulated = false;
    std::vector<busbw_point> points;
};

/// One collective: a curve for each library.
struct busbw_table {
    std::string file, created, command, host;
    std::optional<std::string> processor;
    std::optional<std::int64_t> cores;
    std::optional<double> load, load_before;
    bool busy = false;
    std::string busy_text;
    std::vector<report_fact> context;
    std::string collective, type, redop;
    int ranks = 1;
    bool simulated = false;
    std::vector<busbw_curve> curves;
};

/// Returns whether the document's schema is theirs.
bool is_collectives(nlohmann::json const& document);

/// Appends a table for each collective; messages between two ranks have none. Throws errc::invalid_data with the place.
void add_busbw_tables(checked_json const& from, std::string const& file, std::vector<busbw_table>& tables);

}  // namespace muster
