// The report's document: gathers studies and collectives into the JSON from which page, tables and texts are written.
#pragma once

#include <string>
#include <vector>

#include "bench/report/figure_text.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/study.hpp"
#include "bench/tools/checked_json.hpp"

namespace muster {

struct reported_study {
    study results;
    std::string file;
    std::vector<judgement> judged = {};
};

/// What is reported together.
struct report_input {
    std::vector<reported_study> studies;
    report_json busbw = report_json::array();  ///< as add_busbw_curves makes them
};

/// Reads results.json of muster-bench scale, folders that hold one, and the JSON of collectives. Throws errc::usage,
/// errc::not_found, errc::invalid_data.
report_input read_report_input(std::vector<std::string> const& paths);

/// Schema "muster.report/1": "studies", each as study_summary has it with its "label"; "differences", as
/// study_differences has them; "busbw". Pure.
report_json report_document(report_input const& input);

/// An array of {"setting", "what", "values"}: a row for each setting that is not the same in all studies. A file goes by its last name and
/// its hash. Where only options of the commands differ, each of these has its row. Pure.
report_json study_differences(std::vector<reported_study> const& studies);

// Curves of bus bandwidth: reads them from the results of muster-bench collectives and collectives-here.

/// Whether a document is of one of them, by its schema.
bool is_collectives(nlohmann::json const& document);

/// Appends to `curves` a table for each collective: {"file", "created", "host", "collective", "type", "redop", "ranks", "simulated",
/// "load", "curves": [{"name", "simulated", "points": [{"bytes", "us", "busbw_gbs", "low", "high"}]}]}. busbw is bytes / time * factor, as
/// nccl-tests has it, in GB/s of 1e9 bytes, out of place (in place where that alone was measured). Throws errc::invalid_data with the place.
void add_busbw_curves(checked_json const& from, std::string const& file, report_json& curves);

}  // namespace muster
