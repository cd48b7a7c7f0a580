// The performance log of a study: lines as ReFrame writes them, for what reads ReFrame's logs.
#pragma once

#include <optional>
#include <string>

#include "base/environment.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// A line for each number of ranks below a line that names the fields, divided by '|': the layout of ReFrame's default filelog
/// handler (settings.py of ReFrame 4: result, completion time, the test's attributes, then value, unit, reference and thresholds of
/// each performance variable). The values are medians; the reference of the judged metric is the baseline's, with the tolerance
/// as its worse threshold. `result` is pass if all its runs ended well. Pure.
std::string perflog_text(study const& results, study const* baseline, double tolerance, std::string const& system,
                         std::string const& partition, std::string const& now);

/// Appends it to FOLDER/perflog/SYSTEM/PARTITION/NAME.log and returns the path; the names of the fields are left out where the file
/// begins with the same ones. Throws errc::io, errc::system.
std::string append_perflog(study const& results, study const* baseline, double tolerance, std::string const& folder,
                           environment const& variables);

}  // namespace muster
