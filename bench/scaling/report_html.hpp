// The scaling report: renders a study as one HTML page that needs nothing else.
#pragma once

#include <span>
#include <string>

#include "base/embedded_text.hpp"
#include "bench/study/study.hpp"

namespace muster {

struct report_plots {
    std::string speedup, judged;        ///< <svg> elements; "" where there is nothing to compare
    std::string time_split, published;  ///< of the built-in training alone; else ""
};

/// The page's template, as it was when this program was built.
std::span<embedded_text const> report_templates() noexcept;

/// Every text of the study is escaped; the plots are taken as they are. Pure.
std::string report_html(study const& results, report_plots const& plots);

}  // namespace muster
