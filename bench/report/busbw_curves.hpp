// Curves of bus bandwidth: reads them from the results of muster-bench collectives and collectives-here.
#pragma once

#include <string>

#include "bench/report/figure_text.hpp"
#include "bench/tools/checked_json.hpp"

namespace muster {

/// Whether a document is of one of them, by its schema.
bool is_collectives(nlohmann::json const& document);

/// Appends to `curves` a table for each collective: {"file", "created", "host", "collective", "type", "redop", "ranks", "simulated",
/// "load", "curves": [{"name", "simulated", "points": [{"bytes", "us", "busbw_gbs", "low", "high"}]}]}. busbw is bytes / time * factor, as
/// nccl-tests has it, in GB/s of 1e9 bytes, out of place (in place where that alone was measured). Throws errc::invalid_data with the place.
void add_busbw_curves(checked_json const& from, std::string const& file, report_json& curves);

}  // namespace muster
