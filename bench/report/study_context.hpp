// The context of a study: lists all that was recorded of machine, versions, bindings and load, and what its columns mean.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/report/busbw_table.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// "MNIST network, …" or the program's line with its series and batch. Pure.
std::string study_subtitle(study const& results);

/// The facts of a study for its report, in words. Fields of the record that have no words come last, under their names, so that the
/// report leaves no factor out. Pure.
std::vector<report_fact> study_context(study const& results);
std::vector<report_fact> study_definitions(study const& results);

/// The settings and facts of a study as "plan/repeats": "6", without times and places of a single run. Pure.
std::vector<std::pair<std::string, std::string>> study_settings(study const& results);

}  // namespace muster
