// The scaling report: renders a study as one HTML page that needs nothing else.
#pragma once

#include <string>

#include "bench/scaling/study.hpp"

namespace muster {

struct report_plots {
    std::string speedup, throughput, time_split, published;  ///< <svg> elements
};

/// Every text of the study is escaped; the plots are taken as they are. Pure.
std::string report_html(study const& results, report_plots const& plots);

}  // namespace muster
