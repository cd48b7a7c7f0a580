// The report's document: gathers studies and collectives into what page, tables, texts and JSON are written from.
#pragma once

#include <string>
#include <vector>

#include "bench/report/busbw_table.hpp"
#include "bench/report/study_summary.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/study.hpp"

namespace muster {

struct reported_study {
    study results;
    std::string file;
    std::vector<judgement> judged = {};
};

/// The results that one report shows together.
struct report_input {
    std::vector<reported_study> studies;
    std::vector<busbw_table> busbw = {};
};

/// Reads results.json of muster-bench scale, folders that hold one, and the JSON of collectives. Throws errc::usage,
/// errc::not_found, errc::invalid_data.
report_input read_report_input(std::vector<std::string> const& paths);

/// A setting that is not the same in all studies.
struct setting_difference {
    std::string setting, what;        ///< "plan/launch", and as a reader calls it
    std::vector<std::string> values;  ///< of each study; "" where it has none
};

/// A file goes by its last name and its hash. Where only options of the commands differ, each of these has its row. Pure.
std::vector<setting_difference> study_differences(std::vector<reported_study> const& studies);

struct report_document {
    std::string version;
    std::vector<study_summary> studies;
    std::vector<setting_difference> differences;
    std::vector<busbw_table> busbw;
};

/// Pure.
report_document gather_report(report_input const& input);

}  // namespace muster
