// The report's page: renders its document and its figures as HTML that needs nothing else.
#pragma once

#include <span>
#include <string>

#include "base/text.hpp"
#include "bench/report/report_document.hpp"
#include "bench/report/report_figures.hpp"

namespace muster {

/// The page's template and plots.py, as they were when this program was built.
std::span<embedded_text const> report_templates() noexcept;

/// One page, with the figures in it; without any it has its tables, and says why and how to draw. Every text from outside is escaped. Pure.
std::string report_html(report_document const& document, report_figures const& figures = {});

}  // namespace muster
