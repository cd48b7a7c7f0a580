// The report as JSON: writes the document of --format json and summary.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/report/report_document.hpp"

namespace muster {

/// The report's JSON keeps the order in which it is written.
using report_json = nlohmann::ordered_json;

/// Schema "muster.scaling-summary/4": the members of study_summary, "tiles" with the best point and the bad news. A row's "others" are CPUs, its
/// "outliers" {"repeat" (from 1), "value"}; a judgement's "values" are its figures by name. Pure.
report_json to_json(study_summary const& of);

/// Schema "muster.report/1": "studies", "differences" {"setting", "what", "values"} and "busbw", tables of {"file", "created", "host",
/// "collective", "type", "redop", "ranks", "simulated", "curves": [{"name", "simulated", "points": [{"bytes", "us", "busbw_gbs", …}]}]}. Pure.
report_json to_json(report_document const& of);

/// The text of a file.
std::string dump_json(report_json const& value);

}  // namespace muster
